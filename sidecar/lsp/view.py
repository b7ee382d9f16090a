"""One state of a transcript, from which everything that editors ask for is worked out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from lsprotocol import types

from sidecar.lsp.lines import Lines
from sidecar.lsp.outline import Entry, Outline, outline
from sidecar.messages.importers import Span
from sidecar.tokens.choose import counter
from sidecar.tokens.message_cost import message_tokens

MOST_COUNTED = 8 << 20
"""Bytes of a text up to which tokens are counted; in a larger one they are estimated from its length."""
BYTES_PER_TOKEN = 4


class View:
    """A text that does not change, so that it may be read in any thread."""

    def __init__(self, uri: str, data: bytes, encoding: str, counted: dict[int, int] | None = None) -> None:
        """`counted` has the tokens of messages of earlier states, by hash, and gets those of this one."""
        self.uri = uri
        self.data = data
        self.places = Lines(data, encoding)
        self.outline: Outline = outline(data)
        spans = [entry.span for entry in self.outline.entries]
        # Messages of a session that was rewound need not stand in the order in which they follow each other.
        self._places = sorted(range(len(spans)), key=lambda index: spans[index].start)
        self._starts = [spans[index].start for index in self._places]
        self._turns = [turn.number for turn in self.outline.turns for _ in turn.entries]
        self._tokens: dict[int, int] = {}
        self._counted = {} if counted is None else counted
        self._counter = counter() if len(data) <= MOST_COUNTED else None

    @property
    def entries(self) -> list[Entry]:
        """All messages, oldest first."""
        return self.outline.entries

    @property
    def exact(self) -> bool:
        """Whether tokens are those of a vocabulary."""
        return self._counter is not None and self._counter.exact

    def tokens(self, entry: Entry) -> int:
        """What the message takes of a window, in tokens."""
        key = entry.span.start
        if key not in self._tokens:
            if self._counter is None:
                self._tokens[key] = (entry.span.end - entry.span.start) // BYTES_PER_TOKEN + 1
            else:
                message = hash(self.data[entry.span.start : entry.span.end])
                if message not in self._counted:
                    self._counted[message] = message_tokens(entry.reading, self._counter)
                self._tokens[key] = self._counted[message]
        return self._tokens[key]

    def range(self, span: Span) -> types.Range:
        """Where a piece of the text stands."""
        places = self.places
        return types.Range(types.Position(*places.place(span.start)), types.Position(*places.place(span.end)))

    def first_line(self, span: Span) -> types.Range:
        """Where the first line of a piece stands."""
        end = self.places.end(span.start)
        return self.range(span if span.end <= end else Span(span.start, end))

    def ranges(self, span: Span) -> tuple[types.Range, types.Range]:
        """Where a piece of the text stands, and its first line; the same object where it has but one."""
        whole = self.range(span)
        return whole, whole if whole.start.line == whole.end.line else self.first_line(span)

    def offset(self, position: types.Position) -> int:
        """The byte at a position."""
        return self.places.offset(position.line, position.character)

    def index_at(self, position: types.Position) -> int | None:
        """Which message stands at a position, from 0."""
        offset = self.offset(position)
        number = bisect_right(self._starts, offset) - 1
        if number < 0:
            return None
        index = self._places[number]
        return index if offset <= self.entries[index].span.end else None

    def turn_number(self, index: int) -> int:
        """The turn of the message at an index."""
        return self._turns[index]

    def entries_within(self, wanted: types.Range) -> Iterator[Entry]:
        """The messages that a range touches."""
        start, end = self.offset(wanted.start), self.offset(wanted.end)
        return (entry for entry in self.entries if entry.span.end >= start and entry.span.start <= end)
