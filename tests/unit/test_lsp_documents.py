"""Documents follow the edits of a client exactly, whatever units it counts in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from sidecar.lsp.documents import TranscriptDocument
from sidecar.lsp.outline import UNITS, Lines
from sidecar.messages.importers import Text

ALPHABET = "ab\n\r\té字😀\u2028\u0085\x0c"
TEXTS = st.text(ALPHABET, max_size=40)
ENCODINGS = st.sampled_from(sorted(UNITS))


def document(text: str, encoding: str = "utf-16") -> TranscriptDocument:
    return TranscriptDocument("file:///a.jsonl", text, 1, "jsonl", encoding)


def size(text: str, encoding: str) -> int:
    """Length in units, counted one character at a time."""
    code = ord
    if encoding == "utf-32":
        return len(text)
    if encoding == "utf-16":
        return sum(2 if code(character) > 0xFFFF else 1 for character in text)
    return sum(1 + (code(c) > 0x7F) + (code(c) > 0x7FF) + (code(c) > 0xFFFF) for c in text)


def place(text: str, index: int, encoding: str) -> tuple[int, int]:
    """The position of a character, found by walking through the text."""
    line = start = 0
    for number, character in enumerate(text[:index]):
        is_first_half = character == "\r" and text[number + 1 : number + 2] == "\n"
        if character in "\r\n" and not is_first_half:
            line, start = line + 1, number + 1
    return line, size(text[start:index], encoding)


def change(text: str, start: tuple[int, int], end: tuple[int, int]) -> Any:
    return types.TextDocumentContentChangePartial(
        types.Range(types.Position(*start), types.Position(*end)), text
    )


def is_inside_a_break(text: str, index: int) -> bool:
    return text[index - 1 : index + 1] == "\r\n" if index else False


@given(TEXTS, TEXTS, st.integers(0, 40), st.integers(0, 40), ENCODINGS)
def test_an_edit_replaces_exactly_its_range(text: str, new: str, one: int, two: int, encoding: str) -> None:
    first, last = sorted(min(index, len(text)) for index in (one, two))
    if is_inside_a_break(text, first) or is_inside_a_break(text, last):
        return
    edited = document(text, encoding)
    edited.apply_change(change(new, place(text, first, encoding), place(text, last, encoding)))
    assert edited.source == text[:first] + new + text[last:]


@given(TEXTS, st.integers(0, 40), ENCODINGS)
def test_offsets_and_positions_are_each_other_s_inverse(text: str, index: int, encoding: str) -> None:
    index = min(index, len(text))
    offset = len(text[:index].encode())
    lines = Lines(Text.of(text.encode()), encoding)
    if not is_inside_a_break(text, index):
        assert lines.place(offset) == place(text, index, encoding)
        assert lines.offset(*lines.place(offset)) == offset


@given(TEXTS, st.integers(0, 50), st.integers(0, 50), ENCODINGS)
def test_every_position_is_some_offset_between_characters(
    text: str, line: int, character: int, encoding: str
) -> None:
    offset = Lines(Text.of(text.encode()), encoding).offset(line, character)
    text.encode()[:offset].decode()


@pytest.mark.parametrize(("encoding", "character"), [("utf-16", 2), ("utf-8", 2), ("utf-8", 4)])
def test_a_position_inside_a_character_means_its_beginning(encoding: str, character: int) -> None:
    assert Lines(Text.of("a😀b".encode()), encoding).offset(0, character) == 1


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r", ""])
def test_a_position_after_the_end_of_a_line_means_its_end(ending: str) -> None:
    assert Lines(Text.of(f"字ab{ending}c{ending}".encode()), "utf-16").offset(0, 99) == (5 if ending else 6)


def test_lines_are_those_of_editors() -> None:
    assert document("a\u2028b\nc\r\nd\re").lines == ["a\u2028b\n", "c\r\n", "d\r", "e"]
