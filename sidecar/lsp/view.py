"""A snapshot of a transcript, from which all editor requests are answered."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

from lsprotocol import types

from sidecar.lsp.outline import Entry, Lines, Outline, outline
from sidecar.messages.importers import Span, Text
from sidecar.tokens.choose import counter
from sidecar.tokens.message_cost import message_tokens

MOST_COUNTED = 8 << 20
"""Maximum bytes of a text whose tokens are counted; in larger ones they are estimated from the length."""
BYTES_PER_TOKEN = 4


class View:
    """An immutable text with its outline, safe to use in any thread."""

    def __init__(self, uri: str, text: Text, encoding: str) -> None:
        self.uri = uri
        self.text = text
        self.places = Lines(text, encoding)
        self.outline: Outline = outline(text)
        spans = [entry.span for entry in self.outline.entries]
        # In a session that was rewound, the messages may be in another order in the text.
        self._places = sorted(range(len(spans)), key=lambda index: spans[index].start)
        self._starts = [spans[index].start for index in self._places]
        self._counter = counter() if text.size <= MOST_COUNTED else None

    @cached_property
    def _turns(self) -> list[int]:
        return [turn.number for turn in self.outline.turns for _ in turn.entries]

    @property
    def entries(self) -> list[Entry]:
        """All messages, oldest first."""
        return self.outline.entries

    @property
    def exact(self) -> bool:
        """Whether tokens are counted with a vocabulary."""
        return self._counter is not None and self._counter.exact

    def piece(self, span: Span) -> bytes:
        """The bytes of a span."""
        return self.text.piece(span, self.places.line(span.start))

    def tokens(self, entry: Entry) -> int:
        """The message's tokens in a context window."""
        counts = self._counter
        if counts is None:
            return (entry.span.end - entry.span.start) // BYTES_PER_TOKEN + 1
        key = ("tokens", self.outline.message_format)
        return self.text.kept.once(key, self.piece(entry.span), lambda: message_tokens(entry.reading, counts))

    def range(self, span: Span) -> types.Range:
        """The position range of a span."""
        places = self.places
        return types.Range(types.Position(*places.place(span.start)), types.Position(*places.place(span.end)))

    def first_line(self, span: Span) -> types.Range:
        """The position range of a span's first line."""
        end = self.places.end(span.start)
        return self.range(span if span.end <= end else Span(span.start, end))

    def offset(self, position: types.Position) -> int:
        """The byte offset of a position."""
        return self.places.offset(position.line, position.character)

    def index_at(self, position: types.Position) -> int | None:
        """The index of the message at a position, or `None`."""
        offset = self.offset(position)
        number = bisect_right(self._starts, offset) - 1
        if number < 0:
            return None
        index = self._places[number]
        return index if offset <= self.entries[index].span.end else None

    def turn_number(self, index: int) -> int:
        """The turn number of the message at an index."""
        return self._turns[index]

    def entries_within(self, wanted: types.Range) -> Iterator[Entry]:
        """The messages that overlap a range, in text order."""
        start, end = self.offset(wanted.start), self.offset(wanted.end)
        first = max(bisect_right(self._starts, start) - 1, 0)
        last = bisect_right(self._starts, end)
        found = (self.entries[index] for index in self._places[first:last])
        return (entry for entry in found if entry.span.end >= start)
