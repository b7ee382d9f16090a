"""The outline of a transcript: lines and positions, turns, entries, calls, and URIs of stored sessions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import chain, groupby
from typing import NamedTuple
from urllib.parse import quote, unquote

from sidecar.messages.contract import Reading
from sidecar.messages.dialects import dialect
from sidecar.messages.importers import Span, Text, Transcript, TranscriptError, detect, read
from sidecar.messages.importers.documents import salvage
from sidecar.messages.importers.transcript import BAD_LINE, TORN_LINE
from sidecar.messages.pairing import CallPlace, pair, turn_numbers

UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
"""For each position encoding, its codec and the bytes per unit."""


class Place(NamedTuple):
    """A position: line and character, from 0; characters count in units of the position encoding."""

    line: int
    character: int


class Lines:
    """Positions in a text, counted in the client's position encoding."""

    def __init__(self, text: Text, encoding: str) -> None:
        self._text = text
        self._codec, self._width = UNITS[encoding]

    def line(self, offset: int) -> int:
        """The line of the byte at `offset`."""
        return bisect_right(self._text.starts, offset) - 1

    def place(self, offset: int) -> Place:
        """The position of the byte at `offset`."""
        line = self.line(offset)
        whole, byte = self._text.lines[line], offset - self._text.starts[line]
        if not byte:
            return Place(line, 0)
        if byte >= len(whole):
            return Place(line, self._text.kept.once(self._codec, whole, lambda: self._units(whole)))
        return Place(line, self._units(whole[:byte]))

    def _units(self, text: bytes) -> int:
        """The length of a text in the client's units."""
        if text.isascii():
            return len(text)
        return len(text.decode(errors="replace").encode(self._codec)) // self._width

    def byte(self, line: int, character: int) -> tuple[int, int]:
        """A position as a line and a byte offset in it, clamped to the end of the line.

        Takes time proportional to the line, not to the text.
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
        """The byte offset of a position."""
        line, byte = self.byte(line, character)
        return self._text.starts[line] + byte

    def end(self, offset: int) -> int:
        """The end of the line of the byte at `offset`, excluding its line break."""
        line = self.line(offset)
        return self._text.starts[line] + len(_content(self._text.lines[line]))


def _content(line: bytes) -> bytes:
    """A line without its line break, if it includes one."""
    if line.endswith(b"\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith((b"\n", b"\r")) else line


_PLAIN = ("openai-chat", "anthropic-messages")
"""Formats of bare messages: a document being edited can be mistaken for lines of them."""
SMALL = 256 * 1024
"""Maximum bytes of a text that is salvaged if any line is bad; larger ones only if most lines are."""


class Entry(NamedTuple):
    """One message."""

    reading: Reading
    span: Span
    result_names: tuple[str, ...]
    """For each tool result of the message, the tool called; empty if unknown."""
    called_in: tuple[int | None, ...] = ()
    """For each tool result of the message, the index of the calling message, or `None`."""


class Turn(NamedTuple):
    """The messages of one turn, at least one."""

    number: int
    entries: list[Entry]

    @property
    def span(self) -> Span:
        """The range from the first message to the last."""
        return Span(self.entries[0].span.start, self.entries[-1].span.end)

    @property
    def opening(self) -> Entry:
        """The message that opens the turn, else its first message."""
        return next((entry for entry in self.entries if entry.reading.opens_turn), self.entries[0])


class Outline(NamedTuple):
    """The conversation in a text."""

    message_format: str
    """The dialect of its messages."""
    entries: list[Entry]
    """All messages, oldest first."""
    turns: list[Turn]


def outline(text: Text) -> Outline:
    """The conversation in a text of any transcript format; without messages if there is none.

    For a text that is damaged or being edited, it has everything that is readable.
    """
    transcript = _transcript(text)
    read_message, kept = dialect(transcript.message_format).read, text.kept
    key = ("reading", transcript.message_format)
    messages = [item.message for item in transcript.items]
    readings = [kept.once(key, message, partial(read_message, message)) for message in messages]
    kept.keep(chain(text.lines, messages), len(text.lines) + len(messages))
    answers = pair(readings).answers
    entries = [
        Entry(reading, item.span, *_called(readings, reading, answers.get(index, ())))
        for index, (reading, item) in enumerate(zip(readings, transcript.items, strict=True))
    ]
    numbered = zip(turn_numbers(readings), entries, strict=True)
    found = [
        Turn(number, [entry for _, entry in group])
        for number, group in groupby(numbered, key=lambda pair: pair[0])
    ]
    return Outline(transcript.message_format, entries, found)


def turns(data: bytes) -> list[Turn]:
    """The turns of `outline`."""
    return outline(Text.of(data)).turns


def _transcript(text: Text) -> Transcript:
    try:
        format = detect(text)
        found = read(text, format)
    except TranscriptError:
        return salvage(text)
    bad = found.skipped.get(BAD_LINE, 0) + found.skipped.get(TORN_LINE, 0)
    if format in _PLAIN and bad and (text.size <= SMALL or bad >= len(found.items)):
        whole = salvage(text)
        if len(whole.items) > len(found.items):
            return whole
    return found


def _called(
    readings: list[Reading], reading: Reading, places: Sequence[CallPlace | None]
) -> tuple[tuple[str, ...], tuple[int | None, ...]]:
    """For each result, the name of the tool and the index of the calling message."""
    if not reading.results:
        return (), ()
    called = [readings[place.message].calls[place.number].name if place else "" for place in places]
    names = tuple(name or result.name for name, result in zip(called, reading.results, strict=False))
    return names, tuple(place.message if place else None for place in places)


_SESSION = "context-sidecar://session/"
_CONTEXT = "context-sidecar://context/"


def session_uri(session_id: str) -> str:
    """The URI of a session."""
    return _SESSION + quote(session_id, safe="")


def session_of(uri: str) -> str | None:
    """The id of the session whose messages a document shows, or `None`."""
    return _named(uri, _SESSION)


def session_behind(uri: str) -> str | None:
    """The id of the session whose messages or context a document shows, or `None`."""
    return _named(uri, _SESSION) or _named(uri, _CONTEXT)


def _named(uri: str, prefix: str) -> str | None:
    return unquote(uri.removeprefix(prefix).partition("#")[0]) if uri.startswith(prefix) else None
