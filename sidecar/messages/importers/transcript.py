"""The source of a transcript, its rows, and the result of an import."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from io import BytesIO
from itertools import accumulate
from typing import IO, Generic, Literal, NamedTuple, Protocol, TypeVar, cast

import msgspec
from msgspec import Raw, Struct, field

from sidecar.messages.contract import MessageError, Usage
from sidecar.messages.dialects.decoding import MessageDecoder


class TranscriptError(ValueError):
    """Raised when a file is not a readable transcript, or not in the named format."""


class Source(Protocol):
    """Where a transcript is read from: a path, or text in memory."""

    def open(self, mode: Literal["rb"], /) -> IO[bytes]:
        """The bytes of the transcript as a stream."""
        ...

    def read_bytes(self) -> bytes:
        """All bytes of the transcript."""
        ...


class Span(NamedTuple):
    """A range of the source, as byte offsets."""

    start: int
    end: int
    """Offset after the last byte."""


class Imported(NamedTuple):
    """One message of a transcript, in the dialect of its format."""

    message: bytes
    """One line of JSON."""
    message_id: str | None
    """The id that the runtime assigned to the message or its row."""
    timestamp_ms: int | None
    span: Span
    """Where the message was read from: its line, or its object in a document."""
    usage: Usage | None = None
    """The provider's usage report for the answer, if the file has it outside the message."""


class Transcript(Struct):
    """The conversation of one file, in order."""

    message_format: str
    """The dialect of the messages, as in `messageFormat`."""
    items: list[Imported] = field(default_factory=list[Imported])
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    """Number of rows left out, by reason: the kind of row, or what is wrong with it."""

    def skip(self, reason: str) -> None:
        """Count one row that is left out."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1


def nothing_in(skipped: Mapping[str, int]) -> str:
    """The error message for a transcript without messages: which rows were left out, and why."""
    by_count = sorted(skipped.items(), key=lambda item: -item[1])
    reasons = ", ".join(f"{count} {reason}" for reason, count in by_count)
    left_out = f"; rows left out: {reasons}" if reasons else ""
    return f"the transcript has no messages{left_out}"


T = TypeVar("T")

_SPARE = 1_000
"""Cached pieces that may remain although they are no longer in the text."""


class Kept:
    """A cache of values computed from pieces of a text, so that unchanged pieces are not parsed again.

    Pieces are identified by their bytes. Several threads may use it: a value dropped by one of them is
    computed again.
    """

    def __init__(self) -> None:
        self._made: dict[object, dict[bytes, object]] = {}

    def once(self, key: object, piece: bytes, make: Callable[[], T]) -> T:
        """The value that `make` computes from the piece alone; `key` names the computation."""
        made = self._made.setdefault(key, {})
        try:
            return cast(T, made[piece])
        except KeyError:
            value = made[piece] = make()
            return value

    def keep(self, pieces: Iterable[bytes], count: int) -> None:
        """Drop values of pieces other than these, once there are many."""
        if max(map(len, self._made.values()), default=0) <= 2 * count + _SPARE:
            return
        there = set(pieces)
        self._made = {
            key: {piece: value for piece, value in list(made.items()) if piece in there}
            for key, made in list(self._made.items())
        }


class Text:
    """An immutable text; an edit returns a new one that shares all unchanged lines.

    Lines end at LF, CR LF and CR only.
    """

    def __init__(self, lines: list[bytes], ending: bytes, size: int, kept: Kept) -> None:
        """Use `Text.of`."""
        self.lines = lines
        """The lines, one more than there are line breaks; with their breaks only if `ending` is empty."""
        self.ending = ending
        """LF if every line break is LF, else empty."""
        self.size = size
        """Size of the text in bytes."""
        self.kept = kept

    @staticmethod
    def of(data: bytes, kept: Kept | None = None) -> Text:
        """The text of these bytes."""
        kept = Kept() if kept is None else kept
        if b"\r" not in data:
            return Text(data.split(b"\n"), b"\n", len(data), kept)
        lines = data.splitlines(keepends=True)
        if data.endswith((b"\n", b"\r")):
            lines.append(b"")
        return Text(lines, b"", len(data), kept)

    def edited(self, start: tuple[int, int], end: tuple[int, int], new: bytes) -> Text:
        """The text with `new` in place of the range between two places, each a line and a byte in it."""
        if not self.ending or b"\r" in new:
            first, last = (self.starts[line] + byte for line, byte in (start, end))
            return Text.of(b"".join((self.data[:first], new, self.data[last:])), self.kept)
        head, tail = self.lines[start[0]][: start[1]], self.lines[end[0]][end[1] :]
        old = self.lines[start[0] : end[0] + 1]
        put = b"".join((head, new, tail)).split(b"\n")
        lines = [*self.lines[: start[0]], *put, *self.lines[end[0] + 1 :]]
        grown = sum(map(len, put)) + len(put) - sum(map(len, old)) - len(old)
        return Text(lines, self.ending, self.size + grown, self.kept)

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each line."""
        width = len(self.ending)
        starts = list(accumulate((len(line) + width for line in self.lines), initial=0))
        starts.pop()
        return starts

    @cached_property
    def data(self) -> bytes:
        """The bytes of the text."""
        return self.ending.join(self.lines)

    def placed_lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines divided at LF as in files, each with its offset; some include their line break."""
        if self.ending:
            return zip(self.starts, self.lines, strict=True)
        lines = list(BytesIO(self.data))
        return zip(accumulate(map(len, lines), initial=0), lines, strict=False)

    def piece(self, span: Span, line: int) -> bytes:
        """The bytes of a span that begins in that line."""
        start = self.starts[line]
        if span.end <= start + len(self.lines[line]):
            return self.lines[line][span.start - start : span.end - start]
        return self.data[span.start : span.end]

    # The `Source` interface.

    def open(self, mode: Literal["rb"], /) -> IO[bytes]:
        """See `Source`."""
        del mode
        return BytesIO(self.data)

    def read_bytes(self) -> bytes:
        """See `Source`."""
        return self.data


BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BAD_LINE = "bad line"
TORN_LINE = "torn last line"

Shape = TypeVar("Shape", bound=Struct)


class Row(NamedTuple, Generic[Shape]):
    """One line of a file."""

    line: bytes
    values: Shape
    span: Span
    """Range of the line without its line break."""
    kept: Kept | None = None
    """The cache of an edited text, if the source is one."""

    def once(self, make: Callable[[Row[Shape]], T]) -> T:
        """The value that `make` computes from the row, which must depend on its line alone."""
        return make(self) if self.kept is None else self.kept.once(make, self.line, lambda: make(self))


class Node(NamedTuple):
    """A row's place in a session's tree."""

    id: str | None
    parent: str | None


def lines(source: Source) -> Iterator[bytes]:
    """The non-blank lines of a file, without a byte order mark; only the last may lack its LF."""
    for _, line in placed_lines(source):
        yield line


def placed_lines(source: Source) -> Iterator[tuple[Span, bytes]]:
    """The same lines, each with its range in the file, excluding the line break."""
    found = source.placed_lines() if isinstance(source, Text) else _placed(source)
    for number, (start, line) in enumerate(found):
        if number == 0 and line.startswith(BYTE_ORDER_MARK):
            line = line.removeprefix(BYTE_ORDER_MARK)
            start += len(BYTE_ORDER_MARK)
        if line.strip():
            yield Span(start, start + len(line.rstrip(b"\r\n"))), line


def _placed(source: Source) -> Iterator[tuple[int, bytes]]:
    offset = 0
    with source.open("rb") as file:
        for line in file:
            yield offset, line
            offset += len(line)


def rows(source: Source, shape: type[Shape], transcript: Transcript) -> Iterator[Row[Shape]]:
    """The rows that are JSON objects; other lines are counted in `transcript.skipped`."""
    decode = MessageDecoder(shape)
    kept = source.kept if isinstance(source, Text) else None

    def decoded(line: bytes) -> Shape:
        line.decode()
        return decode(line)

    for span, line in placed_lines(source):
        try:
            values = decoded(line) if kept is None else kept.once(shape, line, partial(decoded, line))
            yield Row(line, values, span, kept)
        except (MessageError, UnicodeDecodeError):
            transcript.skip(BAD_LINE if line.endswith(b"\n") else TORN_LINE)


def exact(line: bytes, value: Raw) -> bytes:
    """The JSON of one member of a line, on one line, in the line's original bytes."""
    found = bytes(value)
    if found not in line:
        # The line was decoded with lone surrogate escapes masked; the original bytes are at the same offsets.
        from sidecar.surrogates import mask

        start = mask(line).find(found)
        if start >= 0:
            found = line[start : start + len(found)]
    return one_line(found)


def one_line(json: bytes) -> bytes:
    """JSON without the line breaks between its tokens."""
    return b" ".join(part.strip() for part in json.splitlines()) if b"\n" in json else json


def encoded(members: dict[str, object]) -> bytes:
    """A JSON object; `Raw` members keep their bytes."""
    return msgspec.json.encode(members)


def milliseconds(timestamp: str | int | float | None) -> int | None:
    """Milliseconds since 1970 from RFC 3339 text or a number; `None` if it is neither."""
    if timestamp is None:
        return None
    if not isinstance(timestamp, str):
        return int(timestamp)
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    if moment.tzinfo is None:
        from datetime import UTC

        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def active_branch(nodes: Sequence[Node]) -> set[int]:
    """Indices of the rows on the path from the newest row back to the first.

    A row whose parent is not in the file follows the preceding row, because files get truncated and
    compaction starts a new root.
    """
    places = {node.id: index for index, node in enumerate(nodes) if node.id is not None}
    active: set[int] = set()
    index = len(nodes) - 1
    while index >= 0 and index not in active:
        active.add(index)
        parent = nodes[index].parent
        index = index - 1 if parent is None else places.get(parent, index - 1)
    return active
