"""Cuts pages of what was stored, word for word."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from sidecar.messages.contract import Reading
from sidecar.messages.terse_tags import one_line
from sidecar.messages.text import same_id
from sidecar.store.stored import StoredMessage
from sidecar.tools.bounding import CLOSING, LIMIT
from sidecar.tools.rendering import UNNAMED
from sidecar.tools.times import show_time

Form = Literal["text", "json"]

LEADING = 200
"""Characters that are kept free for the first line."""
HEADING = 240
"""Characters that a heading takes at most."""
NAME = 60
"""Characters of a turn's name that are shown."""
WORTH_BEGINNING = 800
"""Characters of room in which a message that does not fit whole is begun, at least."""


class Place(NamedTuple):
    """Where a page begins or ends: a message, and how many of its characters come before."""

    position: int
    offset: int = 0


class Part(Struct, frozen=True, kw_only=True, rename="camel"):
    """A message, or a piece of a long one, word for word."""

    position: int
    message_id: str
    turn_id: str
    role: str
    timestamp: str
    start: int
    """Characters of the message in front of `text`."""
    size: int
    """Characters of the whole message in this form."""
    text: str


class Page(Struct, frozen=True, kw_only=True, rename="camel"):
    """What one call shows, for programs."""

    messages: list[Part]
    message_count: int
    """Messages that are stored."""
    complete: bool
    """Whether that was the last page."""
    next_cursor: str | UnsetType = UNSET


def words_of(stored: StoredMessage, reading: Reading, form: Form, tools: dict[str, str]) -> str:
    """All that a message says as text, or the JSON that was stored; nothing in it is changed.

    `tools` has the names of tools by the ids of their calls.
    """
    if form == "json":
        return stored.body.decode("utf-8", "replace")
    pieces = [reading.text] if reading.text else []
    pieces += [f"[tool: {one_line(call.name)}({call.arguments})]" for call in reading.calls]
    for result in reading.results:
        name = one_line(result.name or tools.get(same_id(result.call_id), "")) or UNNAMED
        pieces.append(f"[result of {name}]\n{result.text}")
    pieces += [f"[{medium.kind}, {medium.size} bytes]" for medium in reading.media]
    return "\n".join(pieces)


class PageBuilder:
    """Takes messages in order until the page is full."""

    def __init__(self, begin: Place) -> None:
        self.parts: list[Part] = []
        self.reached: Place | None = None
        """Where the next page begins, once this one is full."""
        self._begin = begin
        self._room = LIMIT - CLOSING - LEADING

    def add(self, stored: StoredMessage, words: str) -> bool:
        """Take in a message as far as it fits; false once the page is full."""
        start = self._begin.offset if stored.position == self._begin.position else 0
        room = self._room - HEADING
        rest = len(words) - start
        if rest > room and self.parts and room < WORTH_BEGINNING:
            self.reached = Place(stored.position, start)
            return False
        text = words[start : start + max(room, 1)]
        self.parts.append(
            Part(
                position=stored.position,
                message_id=stored.message_id,
                turn_id=stored.turn_id,
                role=stored.role,
                timestamp=show_time(stored.timestamp_ms),
                start=start,
                size=len(words),
                text=text,
            )
        )
        self._room = room - len(text)
        if rest > len(text):
            self.reached = Place(stored.position, start + len(text))
            return False
        return True


def written(parts: Sequence[Part], count: int) -> str:
    """The parts under headings that none of them can contain."""
    tag = _tag(parts)
    first, last = parts[0].position, parts[-1].position
    lines = [
        f"Messages {first} to {last} of {count}, word for word. Each begins with a line "
        f'"--- {tag} message"; no other line that looks like one is one.'
    ]
    for part in parts:
        turn, role = one_line(part.turn_id)[:NAME], one_line(part.role)[:NAME]
        heading = f"--- {tag} message {part.position}, {role} {turn}, {part.timestamp}"
        if len(part.text) < part.size:
            heading += f", characters {part.start + 1}-{part.start + len(part.text)} of {part.size}"
        lines += [f"{heading} ---", part.text]
    return "\n".join(lines)


def _tag(parts: Sequence[Part]) -> str:
    """A word that no part contains; the same for the same parts."""
    text = "\n".join(part.text for part in parts)
    tag = "message"
    while tag in text or tag == "message":
        tag = blake2b(f"{tag} {text}".encode("utf-8", "replace"), digest_size=3).hexdigest()
    return tag
