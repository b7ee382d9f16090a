"""The text of a transcript that is edited: its lines, with what was read from each of them before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from io import BytesIO
from itertools import accumulate
from typing import IO, Literal, TypeVar, cast

from sidecar.messages.importers.transcript import Span

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
