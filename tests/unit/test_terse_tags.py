"""Terse tags in texts, in streams of any pieces, and in messages of every dialect."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.messages.dialects import DIALECTS, dialect
from sidecar.messages.terse_tags import (
    TerseStripper,
    find_tags,
    may_have_tags,
    one_line,
    strip_parts,
    strip_tags,
    summaries,
)

PIECES = st.sampled_from(
    [
        *("<terse>", "</terse>", "<TERSE>", "</Terse>", "<", "</", "<ter", "se>", "<terse", "x</", ">"),
        *("```", "~~~~", "`", "\n", "\r\n", " ", "a", "数", "👍", "\x85", "\u2028", "\ud800"),
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=4), max_size=30).map("".join)


def in_pieces(text: str, cuts: list[int]) -> list[str]:
    at = sorted({min(cut, len(text)) for cut in cuts})
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


@settings(max_examples=1500)
@given(TEXTS, st.lists(st.integers(0, 120), max_size=40))
def test_any_chunking_gives_what_stripping_the_whole_text_gives(text: str, cuts: list[int]) -> None:
    stripper = TerseStripper()
    shown = "".join(stripper.feed(chunk) for chunk in in_pieces(text, cuts))
    assert shown + stripper.close() == strip_tags(text)


@given(TEXTS, st.lists(st.integers(0, 120), max_size=40))
def test_shown_text_is_never_withdrawn(text: str, cuts: list[int]) -> None:
    stripper, shown, whole = TerseStripper(), "", strip_tags(text)
    for chunk in in_pieces(text, cuts):
        shown += stripper.feed(chunk)
        assert whole.startswith(shown)


@given(TEXTS)
def test_stripping_takes_out_tags_and_nothing_else(text: str) -> None:
    kept, at = "", 0
    for tag in find_tags(text):
        assert text[tag.start : tag.start + 7].lower() == "<terse>"
        assert text[tag.stop - 8 : tag.stop].lower() == "</terse>"
        kept += text[at : tag.start]
        at = tag.stop
    assert strip_tags(text) == kept + text[at:]


@given(TEXTS)
def test_a_summary_is_one_line_without_control_characters(text: str) -> None:
    for line in summaries(f"<terse>{text}</terse>"):
        assert line == line.strip() != ""
        assert len(line.splitlines()) == 1
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", line)


def test_a_long_unclosed_tag_costs_no_more_than_its_length() -> None:
    stripper = TerseStripper()
    shown = [stripper.feed("<terse>"), *(stripper.feed("abc ") for _ in range(200_000))]
    assert not any(shown)
    assert len(stripper.close()) == 7 + 800_000


def test_blanks_of_any_number_are_folded_in_linear_time() -> None:
    assert one_line(" " * 1_000_000 + "\n" + " " * 1_000_000 + "x") == "x"


def test_many_openings_are_read_in_linear_time() -> None:
    assert summaries("<terse>" * 200_000 + "x</terse>") == ["x"]


def test_a_message_whose_encoder_escapes_brackets_may_have_tags() -> None:
    assert may_have_tags(rb'{"role":"assistant","content":"\u003cTERSE\u003ex\u003c/terse\u003e"}')
    assert not may_have_tags(b'{"role":"assistant","content":"nothing"}')


def test_a_tag_over_two_parts_goes_from_both() -> None:
    assert strip_parts(["a<terse>b", "c</terse>d", "e"]) == ["a", "d", "e"]


@given(st.lists(TEXTS, max_size=4))
def test_parts_keep_what_the_joined_text_keeps(parts: list[str]) -> None:
    joined = "\n".join(parts)
    breaks = sum("\n" in tag.content for tag in find_tags(joined))
    stripped = strip_parts(parts)
    assert len(stripped) == len(parts)
    if not breaks:
        assert "\n".join(stripped) == strip_tags(joined)


MESSAGES = {
    "openai": (
        b'{ "role" : "assistant",\n "content":"Done. <terse>x</terse>", "n": 1.50,'
        b' "content2":"<terse>y</terse>"}',
        b'{ "role" : "assistant",\n "content":"Done. ", "n": 1.50, "content2":"<terse>y</terse>"}',
    ),
    "anthropic": (
        b'{"content":[{"type":"thinking","thinking":"<terse>no</terse>","signature":"c2ln"},'
        b' {"type":"text", "text":"a<terse>x</terse>\\ud83d"}, {"type":"tool_use","id":"t","name":"f",'
        b'"input":{"text":"<terse>k</terse>"}}],"role":"assistant"}',
        b'{"content":[{"type":"thinking","thinking":"<terse>no</terse>","signature":"c2ln"},'
        b' {"type":"text", "text":"a\\ud83d"}, {"type":"tool_use","id":"t","name":"f",'
        b'"input":{"text":"<terse>k</terse>"}}],"role":"assistant"}',
    ),
    "openai-responses": (
        b'{"type":"message","role":"assistant","content":[{"text":"a<terse>x</terse>","type":"output_text"}],"id":"m"}',
        b'{"type":"message","role":"assistant","content":[{"text":"a","type":"output_text"}],"id":"m"}',
    ),
    "openclaw": (
        b'{"role":"assistant","content":[{"type":"text","text":"a \\u003cterse>x</terse>b"}],'
        b'"timestamp":1700000000000.0}',
        b'{"role":"assistant","content":[{"type":"text","text":"a b"}],"timestamp":1700000000000.0}',
    ),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_message_loses_its_tags_and_keeps_every_other_byte(name: str) -> None:
    raw, shown = MESSAGES[name]
    assert dialect(name).change_texts(raw, strip_parts) == shown


@pytest.mark.parametrize("name", DIALECTS)
@given(text=st.text(max_size=20), other=st.text(max_size=10))
def test_a_message_without_tags_comes_back_as_the_same_bytes(name: str, text: str, other: str) -> None:
    raw = json.dumps({"role": "assistant", other: text, "content": text.replace("<", "")}).encode()
    assert dialect(name).change_texts(raw, strip_parts) is raw


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b"null", b'{"content":null}', b'{"content":5}', b'{"content":[3]}']
)
def test_a_message_without_text_is_returned_unchanged(name: str, body: bytes) -> None:
    assert dialect(name).change_texts(body, strip_parts) is body
