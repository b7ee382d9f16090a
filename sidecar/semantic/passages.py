"""What of a message is turned into vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

from sidecar.messages.contract import MessageError
from sidecar.messages.dialects import dialect
from sidecar.messages.fence import strip
from sidecar.recall.passages import passages
from sidecar.store.stored import StoredMessage

MOST_PARTS = 4
"""Passages of one message, from its beginning."""
SHORTEST = 12
"""Characters below which a text says too little to have a place of its own."""
MOST_FOREIGN = 0.3
"""Share of letters beyond Latin ones from which on the model does not know what a text says."""
_LAST_LATIN = "\u024f"


class Spoken(NamedTuple):
    """A passage that is to have a vector."""

    offset: int
    """Which of the messages, from 0."""
    user: int
    """As in `Kept.users`."""
    text: str
    key: int
    """Stands for the text."""


def spoken(message_format: str, messages: Sequence[StoredMessage], first: int) -> Iterator[Spoken]:
    """What was said in some messages, in passages; positions count from `first`.

    Calls and results of tools are found by their words: names, paths and ids mean nothing to the model.
    """
    reads = dialect(message_format)
    for message in messages:
        if message.heartbeat or message.role not in ("user", "assistant"):
            continue
        try:
            reading = reads.read(message.body)
        except MessageError:
            continue
        if reading.results or reading.calls:
            continue
        user = 1 if message.role == "user" else 2
        for passage in passages(strip(reading.text).strip())[:MOST_PARTS]:
            if is_understood(passage):
                yield Spoken(message.position - first, user, passage, key_of(passage))


def is_understood(text: str) -> bool:
    """Whether the model knows what a text says: it learned English, and has no signs for most others."""
    if len(text.strip()) < SHORTEST:
        return False
    if text.isascii():
        return True
    letters = [letter for letter in text if letter.isalpha()]
    foreign = sum(letter > _LAST_LATIN for letter in letters)
    return bool(letters) and foreign <= MOST_FOREIGN * len(letters)


def key_of(text: str) -> int:
    """Stands for a text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")
