"""A message keeps its fingerprints through changes that hosts make, but not through others."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.messages.contract import IdentityKeys, Mark, Reading
from sidecar.messages.dialects import dialect
from sidecar.messages.identity import keys, leading_keys, reuses_id, same_text, stands_in, stub_refs
from tests.guard_kit import MARKS

wrap = MARKS.wrap


def read(name: str, /, **members: object) -> Reading:
    return dialect(name).marked(MARKS).read(json.dumps(members).encode())


def user(text: str, **members: object) -> Reading:
    return read("openclaw", role="user", content=text, **members)


def calling(*ids: str, **arguments: object) -> Reading:
    blocks = [{"type": "toolCall", "id": call_id, "name": "look", "arguments": arguments} for call_id in ids]
    return read("openclaw", role="assistant", content=blocks)


@pytest.mark.parametrize("spelling", ["a  b", " a\nb ", "a\tb", "a\u00a0b"])
def test_white_space_does_not_count(spelling: str) -> None:
    assert keys(user(spelling)).text == keys(user("a b")).text


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert keys(user("gru\u0308n")).text == keys(user("gr\u00fcn")).text


def test_decorations_of_the_host_do_not_count() -> None:
    decorated = "[Sat 2026-11-21 03:25 UTC] hello\n\nRuntime: agent=main | host=x"
    assert keys(user(decorated)).text == keys(user("hello")).text


def test_injected_text_does_not_count() -> None:
    assert keys(user(f"hello\n\n{wrap(Mark('memory', 'm'), 'facts')}")).text == keys(user("hello")).text


def test_a_string_and_one_text_part_are_the_same() -> None:
    parts = read("openclaw", role="user", content=[{"type": "text", "text": "hello"}])
    assert keys(parts) == keys(user("hello"))


def test_the_role_counts() -> None:
    assert keys(user("yes")).text != keys(read("openclaw", role="assistant", content="yes")).text


def test_the_time_stamp_counts_for_one_key_only() -> None:
    early, late = keys(user("yes", timestamp=1)), keys(user("yes", timestamp=2))
    assert early.text == late.text
    assert early.stamp != late.stamp
    assert keys(user("yes")).stamp == 0


def test_call_ids_are_compared_by_letters_and_digits() -> None:
    assert keys(calling("call_fake_1")).call == keys(calling("callfake1")).call
    assert keys(calling("call_fake_1")).call != keys(calling("call_fake_2")).call


def test_a_call_and_its_result_have_keys_of_their_own() -> None:
    result = read("openclaw", role="toolResult", toolCallId="c1", content="seen")
    assert keys(result).call not in (0, keys(calling("c1")).call)


def test_call_ids_do_not_count_for_the_text() -> None:
    assert keys(calling("a", at=1)).text == keys(calling("b", at=1)).text
    assert keys(calling("a", at=1)).text != keys(calling("a", at=2)).text


def test_the_spelling_of_arguments_does_not_count() -> None:
    function = {"name": "look", "arguments": '{"b": 1, "a": "é"}'}
    respelled = {"name": "look", "arguments": '{"a":"\\u00e9","b":1}'}
    one = read("openai", role="assistant", tool_calls=[{"id": "c", "function": function}])
    other = read("openai", role="assistant", tool_calls=[{"id": "c", "function": respelled}])
    assert keys(one) == keys(other)


def test_synthetic_messages_have_no_keys() -> None:
    assert keys(user(wrap(Mark("summary", "n1"), "so far"), timestamp=1)) == IdentityKeys(0, 0, 0)


def test_a_stubbed_result_keeps_the_key_of_its_call() -> None:
    whole = read("openclaw", role="toolResult", toolCallId="call_1", content="long")
    stub = read(
        "openclaw", role="toolResult", toolCallId="call1", content=wrap(Mark("stub", "m3"), "left out")
    )
    assert keys(stub).call == keys(whole).call
    assert stub_refs(stub) == ["m3"]
    assert stands_in(stub, [whole])


def test_a_partly_stubbed_message_names_the_messages_it_replaces() -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": "a", "content": wrap(Mark("stub", "m3"), "left out")},
        {"type": "tool_result", "tool_use_id": "b", "content": "seen"},
    ]
    reading = read("anthropic", role="user", content=blocks)
    assert reading.mark is None
    assert stub_refs(reading) == ["m3"]


def test_a_stub_stands_for_a_message_that_answers_the_same_call_and_says_the_rest() -> None:
    def results(*pairs: tuple[str, str]) -> Reading:
        blocks = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in pairs]
        return read("anthropic", role="user", content=blocks)

    stub = wrap(Mark("stub", "m3"), "left out")
    whole = results(("a", "long"), ("b", "seen"))
    assert stands_in(results(("a", stub), ("b", "seen")), [whole])
    assert stands_in(results(("a", stub)), [whole])
    assert not stands_in(results(("a", stub), ("b", "something new")), [whole])
    assert not stands_in(results(("a", stub), ("c", "something new")), [whole])
    assert not stands_in(results(("c", stub)), [whole])


@given(st.text(min_size=1), st.text(min_size=1))
def test_the_beginning_of_a_merged_message_is_found(first: str, second: str) -> None:
    parts = [{"type": "text", "text": first}, {"type": "text", "text": second}]
    merged = read("openclaw", role="assistant", content=parts)
    alone = read("openclaw", role="assistant", content=[parts[0]])
    wanted = keys(alone).text
    lines = first.count("\n")
    assert not first.strip() or wanted in [beginning.text for beginning in leading_keys(merged, lines + 1)]


def test_the_same_id_with_different_text_is_distinguished() -> None:
    assert same_text(user("a  b"), user("a b"))
    assert not same_text(user("a b"), user("a c"))
    assert not same_text(calling("a", at=1), calling("a", at=2))


def test_a_reused_provider_id_is_distinguished_by_time_and_text() -> None:
    first = user("one", timestamp=1)
    assert reuses_id(first, user("two", timestamp=2))
    assert not reuses_id(first, user("one", timestamp=2)), "a host that tries again keeps the key"
    assert not reuses_id(first, user("two", timestamp=1))
    assert not reuses_id(first, user("two"))


@given(st.text())
def test_keys_fit_signed_64_bits(text: str) -> None:
    assert all(-(2**63) <= key < 2**63 for key in keys(user(text, timestamp=5)))


def test_a_reply_with_the_id_of_an_earlier_one_is_another_message_at_another_time() -> None:
    first, later = (read("openclaw", role="assistant", content="Done.", timestamp=at) for at in (1, 2))
    assert reuses_id(first, later)
    assert not reuses_id(first, first)
    assert not reuses_id(first, read("openclaw", role="assistant", content="Done."))
