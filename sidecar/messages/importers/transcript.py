"""The source of a transcript, its rows, and what importing it yields."""

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
    """Raised when a file holds no transcript that can be read, or not of the format that was named."""


class Source(Protocol):
    """Where a transcript is read from: a path, or text that is not in a file."""

    def open(self, mode: Literal["rb"], /) -> IO[bytes]:
        """The bytes of the transcript as a stream."""
        ...

    def read_bytes(self) -> bytes:
        """All bytes of the transcript."""
        ...


class Span(NamedTuple):
    """A piece of the source, as offsets in bytes."""

    start: int
    end: int
    """Of the first byte behind the piece."""


class Imported(NamedTuple):
    """One message of a transcript, in the dialect of its format."""

    message: bytes
    """One line of JSON."""
    message_id: str | None
    """The id that the runtime gave the message or its row."""
    timestamp_ms: int | None
    span: Span
    """What the message was read from: its line, or its object in a document."""
    usage: Usage | None = None
    """What the provider reported for the answer, where the file has it outside the message."""


class Transcript(Struct):
    """The conversation of one file, in order."""

    message_format: str
    """The dialect of the messages, a `messageFormat`."""
    items: list[Imported] = field(default_factory=list[Imported])
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    """How many rows were left out, by reason: a kind of row, or what is wrong with it."""

    def skip(self, reason: str) -> None:
        """Count one row that is left out."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1


def nothing_in(skipped: Mapping[str, int]) -> str:
    """What is to be said where a transcript yields no message: which rows were left out, and why."""
    by_count = sorted(skipped.items(), key=lambda item: -item[1])
    reasons = ", ".join(f"{count} {reason}" for reason, count in by_count)
    left_out = f"; left out are rows of these kinds: {reasons}" if reasons else ""
    return f"the transcript has no messages{left_out}"


T = TypeVar("T")

_SPARE = 1_000
"""Pieces that are not in the text any more and are kept all the same."""


class Kept:
    """What was made of pieces of a text, so that a piece that has not changed is not read again.

    Pieces are told apart by their bytes. It may be used by several threads: what one forgets of the work of
    another is made again.
    """

    def __init__(self) -> None:
        self._made: dict[object, dict[bytes, object]] = {}

    def once(self, key: object, piece: bytes, make: Callable[[], T]) -> T:
        """What `make` makes of the piece; `key` names what it makes, which follows from the piece alone."""
        made = self._made.setdefault(key, {})
        try:
            return cast(T, made[piece])
        except KeyError:
            value = made[piece] = make()
            return value

    def keep(self, pieces: Iterable[bytes], count: int) -> None:
        """Forget what was made of other pieces than these, once there are many of them."""
        if max(map(len, self._made.values()), default=0) <= 2 * count + _SPARE:
            return
        there = set(pieces)
        self._made = {
            key: {piece: value for piece, value in list(made.items()) if piece in there}
            for key, made in list(self._made.items())
        }


class Text:
    """A text that does not change; an edit makes another one, which has all other lines in common with it.

    Lines are divided at LF, CR LF and CR, and nowhere else.
    """

    def __init__(self, lines: list[bytes], ending: bytes, size: int, kept: Kept) -> None:
        """Use `Text.of`."""
        self.lines = lines
        """One more than there are line breaks; without their breaks where `ending` is LF, else with them."""
        self.ending = ending
        """LF where every line break is one, else empty."""
        self.size = size
        """Bytes of the text."""
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
        """The text with `new` instead of what stands between two places, each a line and a byte in it."""
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
        """The lines as files are divided, at LF, each with its offset; maybe with its break."""
        if self.ending:
            return zip(self.starts, self.lines, strict=True)
        lines = list(BytesIO(self.data))
        return zip(accumulate(map(len, lines), initial=0), lines, strict=False)

    def piece(self, span: Span, line: int) -> bytes:
        """What stands in a span that begins in that line."""
        start = self.starts[line]
        if span.end <= start + len(self.lines[line]):
            return self.lines[line][span.start - start : span.end - start]
        return self.data[span.start : span.end]

    # What importers read from.

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
    """The line without its line break."""
    kept: Kept | None = None
    """What was made of lines before, where the text is one that is edited."""

    def once(self, make: Callable[[Row[Shape]], T]) -> T:
        """What `make` makes of the row, which follows from its line alone."""
        return make(self) if self.kept is None else self.kept.once(make, self.line, lambda: make(self))


class Node(NamedTuple):
    """A row's place in the tree of a session."""

    id: str | None
    parent: str | None


def lines(source: Source) -> Iterator[bytes]:
    """The lines of a file that are not blank, without a byte order mark; only the last may lack its LF."""
    for _, line in placed_lines(source):
        yield line


def placed_lines(source: Source) -> Iterator[tuple[Span, bytes]]:
    """The same lines, each with its place in the file, which does not include the line break."""
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
    """The rows that are JSON objects; others are counted in `transcript.skipped`."""
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
    """The JSON of one member of a line, on one line, with the line's own bytes where they are valid JSON."""
    found = bytes(value)
    if found not in line:
        # The line was decoded with lone surrogate escapes masked; its own bytes stand at the same place.
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
    """Milliseconds of an RFC 3339 text or a number; `None` where it is neither."""
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
    """The rows from the newest one back to the first.

    A row without a parent in the file follows the row in front of it: files are cut, and compaction starts
    a new root.
    """
    places = {node.id: index for index, node in enumerate(nodes) if node.id is not None}
    active: set[int] = set()
    index = len(nodes) - 1
    while index >= 0 and index not in active:
        active.add(index)
        parent = nodes[index].parent
        index = index - 1 if parent is None else places.get(parent, index - 1)
    return active
