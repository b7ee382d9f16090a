"""An edit parses only what changed, and gives the same result as parsing the whole transcript."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from sidecar.lsp.annotations import code_lenses, role_tokens
from sidecar.lsp.documents import TranscriptDocument
from sidecar.lsp.outline import outline
from sidecar.lsp.symbols import document_symbols, folding_ranges
from sidecar.lsp.view import View
from sidecar.messages.importers import Text
from sidecar.messages.importers.transcript import Kept
from tests.e2e.transcript_files import FILES, lines, openai

T = TypeVar("T")

MANY = 50
PIECES = st.sampled_from(
    ["", "x", '"', "{", "}", ",", "\n", "\r\n", "\r", "字😀", '\n{"role": "user", "content": "new"}\n']
)


class CountingKept(Kept):
    """Counts values computed because the cache lacked them."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0

    def once(self, key: object, piece: bytes, make: Callable[[], T]) -> T:
        def counted() -> T:
            self.made += 1
            return make()

        return super().once(key, piece, counted)


def change(line: int, start: int, end: int, text: str, end_line: int | None = None) -> Any:
    last = line if end_line is None else end_line
    place = types.Range(types.Position(line, start), types.Position(last, end))
    return types.TextDocumentContentChangePartial(place, text)


def told(view: View) -> list[object]:
    """Everything that editors get for a text."""
    return [
        view.outline,
        document_symbols(view),
        folding_ranges(view),
        role_tokens(view),
        list(code_lenses(view, 1000)),
    ]


@settings(deadline=None)
@given(
    st.sampled_from(sorted(FILES)),
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 200), st.integers(0, 2), st.integers(0, 200), PIECES),
        min_size=1,
        max_size=5,
    ),
)
def test_after_edits_everything_is_as_a_fresh_look_finds_it(
    name: str, edits: list[tuple[int, int, int, int, str]]
) -> None:
    document = TranscriptDocument("file:///a", FILES[name], 1, "jsonl", "utf-16")
    View("file:///a", document.text, "utf-16")
    for line, start, more, end, text in edits:
        document.apply_change(change(line, start, end, text, line + more))
        data = document.text.data
        assert document.text.size == len(data)
        assert document.text.lines == Text.of(data).lines or b"\r" not in data
        fresh = View("file:///a", Text.of(data), "utf-16")
        assert told(View("file:///a", document.text, "utf-16")) == told(fresh)


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name].count("\n{") > 2])
def test_an_edit_parses_only_one_line_again(name: str) -> None:
    """However many lines there are."""
    rows = FILES[name]
    kept = CountingKept()
    text = Text.of((rows * MANY).encode(), kept)
    outline(text)
    first = rows.splitlines()[-1]
    line = len(rows.splitlines()) - 1
    place = first.index("thanks")
    edited = text.edited((line, len(first[:place].encode())), (line, len(first[:place].encode())), b"many ")
    kept.made = 0
    outline(edited)
    assert 0 < kept.made <= 6


def test_cached_values_of_removed_text_are_eventually_dropped() -> None:
    kept = Kept()
    text = Text.of(lines(*openai()).encode(), kept)
    for number in range(3_000):
        text = text.edited((0, 29), (0, 29 + len(str(number - 1)) * (number > 0)), str(number).encode())
        outline(text)
    assert max(len(made) for made in kept._made.values()) <= 1_100


def test_an_edit_leaves_the_surrounding_lines_unchanged() -> None:
    text = Text.of(b"one\ntwo\nthree\n")
    edited = text.edited((1, 1), (1, 2), b"wx\ny")
    assert edited.lines == [b"one", b"twx", b"yo", b"three", b""]
    assert edited.lines[0] is text.lines[0] and edited.lines[3] is text.lines[2]
    assert text.data == b"one\ntwo\nthree\n"
