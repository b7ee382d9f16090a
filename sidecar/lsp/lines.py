"""Translates between offsets in a text and positions as editors count them."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
"""For each position encoding, a codec and the bytes of one of its units."""


class Place(NamedTuple):
    """A position: line and character from 0, characters in units of the position encoding."""

    line: int
    character: int


class Lines:
    """The lines of a text in UTF-8, divided at LF, CR LF and CR, and nowhere else."""

    def __init__(self, data: bytes, encoding: str) -> None:
        self._data = data
        self._codec, self._width = UNITS[encoding]
        self._starts = _starts(data)

    def place(self, offset: int) -> Place:
        """Where the byte at `offset` stands."""
        line = bisect_right(self._starts, offset) - 1
        text = self._data[self._starts[line] : offset]
        if text.isascii():
            return Place(line, len(text))
        return Place(line, len(text.decode(errors="replace").encode(self._codec)) // self._width)

    def offset(self, line: int, character: int) -> int:
        """The byte at a position; a position behind the end of its line means that end."""
        if line >= len(self._starts):
            return len(self._data)
        start = self._starts[line]
        text = self._data[start : self.end(start)]
        if text.isascii():
            return start + min(character, len(text))
        units = text.decode(errors="replace").encode(self._codec)
        front = units[: character * self._width].decode(self._codec, "ignore")
        return start + len(front.encode())

    def end(self, offset: int) -> int:
        """The end of the line in which the byte at `offset` stands, in front of its line break."""
        number = bisect_right(self._starts, offset)
        if number == len(self._starts):
            return len(self._data)
        end = self._starts[number]
        return end - 2 if self._data[end - 2 : end] == b"\r\n" else end - 1


def _starts(data: bytes) -> list[int]:
    starts = [0]
    if b"\r" not in data:
        found = data.find(b"\n")
        while found >= 0:
            starts.append(found + 1)
            found = data.find(b"\n", found + 1)
        return starts
    offset = 0
    for line in data.splitlines(keepends=True):
        offset += len(line)
        starts.append(offset)
    if not data.endswith((b"\n", b"\r")):
        starts.pop()
    return starts
