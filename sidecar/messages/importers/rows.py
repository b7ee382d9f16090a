"""Reads JSON Lines files row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct

from sidecar.messages.contract import MessageError
from sidecar.messages.dialects.decoding import MessageDecoder
from sidecar.messages.importers.text import Kept, Text
from sidecar.messages.importers.transcript import Source, Span, Transcript

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BAD_LINE = "bad line"
TORN_LINE = "torn last line"

Shape = TypeVar("Shape", bound=Struct)
T = TypeVar("T")


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
