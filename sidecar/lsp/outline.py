"""Divides the text of a transcript into turns and messages, each with its place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain, groupby
from typing import NamedTuple

from sidecar.messages.contract import Reading
from sidecar.messages.dialects import dialect
from sidecar.messages.importers import Span, Text, Transcript, TranscriptError, detect, read
from sidecar.messages.importers.rows import BAD_LINE, TORN_LINE
from sidecar.messages.importers.salvage import salvage
from sidecar.messages.pairing import CallPlace, pair
from sidecar.messages.turns import turn_numbers

_PLAIN = ("openai-chat", "anthropic-messages")
"""Formats without rows around the messages: a document that is being edited can be taken for their lines."""
SMALL = 256 * 1024
"""Bytes of a text that is searched for messages wherever a line is bad; a larger one where most lines are."""


class Entry(NamedTuple):
    """One message."""

    reading: Reading
    span: Span
    result_names: tuple[str, ...]
    """For each tool result of the message, the tool that was called; empty where no call is known."""
    called_in: tuple[int | None, ...] = ()
    """For each tool result of the message, the index of the message that calls; `None` where none does."""


class Turn(NamedTuple):
    """The messages of one turn, at least one."""

    number: int
    entries: list[Entry]

    @property
    def span(self) -> Span:
        """From the first message to the last one."""
        return Span(self.entries[0].span.start, self.entries[-1].span.end)

    @property
    def opening(self) -> Entry:
        """The message that opens the turn; the first one where none does."""
        return next((entry for entry in self.entries if entry.reading.opens_turn), self.entries[0])


class Outline(NamedTuple):
    """The conversation in a text."""

    message_format: str
    """The dialect of its messages."""
    entries: list[Entry]
    """All messages, oldest first."""
    turns: list[Turn]


def outline(text: Text) -> Outline:
    """The conversation in a text of any transcript format; without messages where there is none.

    Of a text that is torn, or being edited, it is what can be read.
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
    """For each result the name of the tool, and the message that calls it."""
    if not reading.results:
        return (), ()
    called = [readings[place.message].calls[place.number].name if place else "" for place in places]
    names = tuple(name or result.name for name, result in zip(called, reading.results, strict=False))
    return names, tuple(place.message if place else None for place in places)
