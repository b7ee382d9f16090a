"""Tells a message that hosts have put our text behind: the user's own words, then memory within its fence."""

from __future__ import annotations

from sidecar.messages.contract import Dialect, MessageError
from sidecar.messages.decorations import is_decoration, undecorated
from sidecar.messages.fence import OPENING, OPENING_BYTES, find, strip
from sidecar.messages.folding import fold
from sidecar.messages.identity import same_text


def own_words(text: str) -> str:
    """`text` without what hosts and we have put around it."""
    if OPENING in text:
        text = strip(text)
    return undecorated(text).strip()


def says(text: str, prompt: str) -> bool:
    """Whether a message of this text is the one with which the user asks `prompt`."""
    return fold(text) == fold(prompt) or fold(own_words(text)) == fold(own_words(prompt))


def has_appendix(text: str) -> bool:
    """Whether nothing of ours is in `text` but memory, or what was recalled, behind the words of the user."""
    if OPENING not in text:
        return False
    parts = find(text)
    if not parts or not text[: parts[0].start].strip():
        return False
    ends = [*(part.start for part in parts[1:]), len(text)]
    return all(
        part.mark.kind in ("memory", "recall") and is_decoration(text, part.stop, end)
        for part, end in zip(parts, ends, strict=True)
    )


def is_same_appended(dialect: Dialect, before: bytes, now: bytes) -> bool:
    """Whether `now` is the message `before` with an appendix that this did not have."""
    if OPENING_BYTES not in now or OPENING_BYTES in before:
        return False
    try:
        reading, bare = dialect.read(now), dialect.read(before)
    except MessageError:
        return False
    return reading.role == "user" and has_appendix(reading.text) and same_text(bare, reading)
