"""Properties of every dialect, for any message."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.messages.contract import Dialect, Mark, MessageError, Missing, ToolCall
from sidecar.messages.dialects import DIALECTS, dialect
from tests.guard_kit import MARKS

CALL = ToolCall("call_1", "look", '{"at":"sky"}')

# Names that the dialects look at, so that odd values often meet a member that is read.
_NAMES = """role type content text tool_calls id function name arguments tool_call_id toolCallId input output
call_id summary timestamp responseId idempotencyKey usage source data thinking refusal audio image_url
tool_use_id"""
_ROLES = """user assistant system developer tool toolResult message reasoning text image function_call
function_call_output tool_result tool_use toolCall thinking custom"""
_names = st.sampled_from(re.findall(r"\w+", _NAMES))
_roles = st.sampled_from(re.findall(r"\w+", _ROLES))
_numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
_scalars = st.one_of(st.none(), st.booleans(), _numbers, st.text(), _roles)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_names, inner, max_size=5)),
    max_leaves=12,
)
odd_messages = st.builds(
    lambda members, role: json.dumps({**members, **role}).encode(),
    st.dictionaries(_names, _values, max_size=8),
    st.one_of(
        st.builds(lambda role: {"role": role}, _roles),
        st.builds(lambda kind: {"role": None, "type": kind}, _roles),
    ),
)


@pytest.fixture(params=DIALECTS)
def spoken(request: pytest.FixtureRequest) -> Dialect:
    return dialect(request.param).marked(MARKS)


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=100, deadline=None)
@given(raw=odd_messages)
def test_no_shape_of_a_message_is_an_error(name: str, raw: bytes) -> None:
    dialect(name).read(raw)


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=100, deadline=None)
@given(raw=odd_messages)
def test_a_glance_agrees_with_a_reading(name: str, raw: bytes) -> None:
    glance, reading = dialect(name).glance(raw), dialect(name).read(raw)
    assert glance.role == reading.role
    assert glance.opens_turn == reading.opens_turn
    assert glance.inner_id == reading.inner_id
    assert glance.timestamp_ms == reading.timestamp_ms


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=60, deadline=None)
@given(raw=odd_messages, texts=st.dictionaries(st.sampled_from(["", "a", "user"]), st.text(), max_size=2))
def test_replacing_results_gives_a_message_again(name: str, raw: bytes, texts: dict[str, str]) -> None:
    before = dialect(name).read(raw)
    after = dialect(name).read(dialect(name).replace_results(raw, texts))
    assert (after.role, after.calls) == (before.role, before.calls)


@pytest.mark.parametrize(
    "raw", [b"[]", b"3", b'"user"', b"", b"{", b"null", b"{}", b'{"content":"x"}', b'{"role":7}']
)
def test_a_value_that_is_not_a_message_is_refused(spoken: Dialect, raw: bytes) -> None:
    with pytest.raises(MessageError):
        spoken.read(raw)
    with pytest.raises(MessageError):
        spoken.glance(raw)


def test_an_unknown_role_reads_as_other(spoken: Dialect) -> None:
    reading = spoken.read(b'{"role":"narrator","content":"once"}')
    assert (reading.role, reading.wire_role, reading.opens_turn) == ("other", "narrator", False)


@pytest.mark.parametrize("text", ["hello", "", "grüß dich", 'a "quoted" \\ one\n'])
def test_a_written_user_message_opens_a_turn(spoken: Dialect, text: str) -> None:
    raw = spoken.write_text("user", text, 1_700_000_000_000)
    reading = spoken.read(raw)
    assert (reading.role, reading.text, reading.opens_turn) == ("user", text, True)
    assert spoken.glance(raw).opens_turn


def test_a_written_assistant_message_reads_back(spoken: Dialect) -> None:
    reading = spoken.read(spoken.write_text("assistant", "well", 1_700_000_000_000))
    assert (reading.role, reading.text, reading.calls) == ("assistant", "well", ())


def test_a_written_result_answers_its_call(spoken: Dialect) -> None:
    reading = spoken.read(spoken.write_result(CALL, "blue", 1_700_000_000_000))
    assert reading.role == "tool"
    assert [(result.call_id, result.text) for result in reading.results] == [("call_1", "blue")]
    assert not reading.opens_turn


ODD_IDS: dict[str, str] = {
    "openai": '{"role":"assistant","content":null,"tool_calls":[{"id":ODD,"type":"function",'
    '"function":{"name":"look","arguments":"{}"}}]}',
    "openai-responses": '{"type":"function_call","call_id":ODD,"name":"look","arguments":"{}"}',
    "anthropic": '{"role":"assistant","content":[{"type":"tool_use","id":ODD,"name":"look","input":{}}]}',
    "openclaw": '{"role":"assistant","content":[{"type":"toolCall","id":ODD,"name":"look","arguments":{}}]}',
}


@pytest.mark.parametrize("odd", ["5", "null", "true", '{"a":1}', "[]", '""'])
def test_no_result_is_made_up_for_a_call_whose_id_cannot_be_read(spoken: Dialect, odd: str) -> None:
    raw = ODD_IDS[spoken.name].replace("ODD", odd).encode()
    said = [spoken.write_text("user", text, 1_700_000_000_000) for text in ("look", "and?")]
    readings = [spoken.read(said[0]), spoken.read(raw), spoken.read(said[1])]
    placements = spoken.arrange(readings)
    assert not any(isinstance(placement, Missing) for placement in placements)


def test_an_interrupted_call_of_the_deprecated_kind_is_answered_by_name() -> None:
    openai = dialect("openai")
    function = {"name": "look", "arguments": "{}"}
    raw = json.dumps({"role": "assistant", "content": None, "function_call": function}).encode()
    (call,) = openai.read(raw).calls
    written = json.loads(openai.write_result(call, "nothing", 0))
    assert written == {"role": "function", "name": "look", "content": "nothing"}
    assert openai.read(json.dumps(written).encode()).results[0].call_id == call.id


def test_a_reading_of_fenced_text_is_marked_and_opens_no_turn(spoken: Dialect) -> None:
    mark = Mark("summary", "n1")
    raw = spoken.write_text("user", MARKS.wrap(mark, "earlier"), 1_700_000_000_000)
    assert spoken.read(raw).mark == mark
    assert not spoken.read(raw).opens_turn


def test_fenced_text_next_to_user_text_does_not_mark_the_message(spoken: Dialect) -> None:
    raw = spoken.write_text("user", f"{MARKS.wrap(Mark('memory', 'm'), 'facts')}\n\ngo on", 1_700_000_000_000)
    assert spoken.read(raw).mark is None
    assert spoken.glance(raw).opens_turn


def test_a_replaced_result_is_marked_as_a_stub(spoken: Dialect) -> None:
    raw = spoken.write_result(CALL, "blue " * 50, 1_700_000_000_000)
    mark = Mark("stub", "m7")
    stubbed = spoken.read(spoken.replace_results(raw, {"call_1": MARKS.wrap(mark, "left out")}))
    assert stubbed.mark == mark
    assert [result.call_id for result in stubbed.results] == ["call_1"]


def test_results_of_other_calls_are_not_replaced(spoken: Dialect) -> None:
    raw = spoken.write_result(CALL, "blue", 1_700_000_000_000)
    assert spoken.replace_results(raw, {"call_2": "red"}) == raw


def test_a_lone_surrogate_does_not_hide_the_message(spoken: Dialect) -> None:
    raw = b'{"role":"user","content":"cut \\ud83d"}'
    assert spoken.read(raw).text == "cut \ufffd"
    assert spoken.glance(raw).opens_turn


def test_a_message_nested_too_deep_still_has_its_role(spoken: Dialect) -> None:
    raw = b'{"x":' + b"[" * 20_000 + b"]" * 20_000 + b',"role":"user","content":"hi"}'
    assert spoken.read(raw).role == "user"
    assert spoken.glance(raw).role == "user"


def test_dialects_are_known_by_name_only() -> None:
    with pytest.raises(KeyError):
        dialect("morse")
