"""Translates between offsets in a text and positions as editors count them."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from sidecar.messages.importers import Text

UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
"""For each position encoding, a codec and the bytes of one of its units."""


class Place(NamedTuple):
    """A position: line and character from 0, characters in units of the position encoding."""

    line: int
    character: int


class Lines:
    """The positions in a text, as a client with that position encoding counts them."""

    def __init__(self, text: Text, encoding: str) -> None:
        self._text = text
        self._codec, self._width = UNITS[encoding]

    def line(self, offset: int) -> int:
        """The line in which the byte at `offset` stands."""
        return bisect_right(self._text.starts, offset) - 1

    def place(self, offset: int) -> Place:
        """Where the byte at `offset` stands."""
        line = self.line(offset)
        whole, byte = self._text.lines[line], offset - self._text.starts[line]
        if not byte:
            return Place(line, 0)
        if byte >= len(whole):
            return Place(line, self._text.kept.once(self._codec, whole, lambda: self._units(whole)))
        return Place(line, self._units(whole[:byte]))

    def _units(self, text: bytes) -> int:
        """Length of a text as the client counts."""
        if text.isascii():
            return len(text)
        return len(text.decode(errors="replace").encode(self._codec)) // self._width

    def byte(self, line: int, character: int) -> tuple[int, int]:
        """A position as a line and a byte in it; one behind the end of its line means that end.

        Nothing here costs time in proportion to the text.
        """
        lines = self._text.lines
        if line >= len(lines):
            return len(lines) - 1, len(lines[-1])
        text = _content(lines[line])
        if text.isascii():
            return line, min(character, len(text))
        units = text.decode(errors="replace").encode(self._codec)
        front = units[: character * self._width].decode(self._codec, "ignore")
        return line, len(front.encode())

    def offset(self, line: int, character: int) -> int:
        """The byte of the text at a position."""
        line, byte = self.byte(line, character)
        return self._text.starts[line] + byte

    def end(self, offset: int) -> int:
        """The end of the line in which the byte at `offset` stands, in front of its line break."""
        line = self.line(offset)
        return self._text.starts[line] + len(_content(self._text.lines[line]))


def _content(line: bytes) -> bytes:
    """A line without its break; where the text keeps breaks apart, there is none."""
    if line.endswith(b"\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith((b"\n", b"\r")) else line
