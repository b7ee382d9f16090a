"""Tells whether an answer extends the ones before it, which is what the context epoch stands for."""

from __future__ import annotations

# `hashlib` would load OpenSSL, which costs more than all other imports of the first answer together.
from _blake2 import blake2b
from collections.abc import Callable, Sequence
from os import urandom

from msgspec import Struct, json


class EpochRecord(Struct, frozen=True, array_like=True):
    """What is kept of the newest epoch so that it survives a restart."""

    epoch: int
    count: int
    """Messages of the newest answer of the epoch."""
    chain: str
    """Running hash over those messages."""
    signature: str
    """Stands for everything else that must not change within an epoch."""
    name: str = ""
    """Tells the session from one of the same id that was deleted."""


class Continuity:
    """The epoch of one session. An answer that does not extend the one before begins a new epoch.

    `is_same` is asked about messages whose bytes differ: whether the second one is the first with text at its
    end that the answer before had apart.
    """

    def __init__(self, record: bytes | None, is_same: Callable[[bytes, bytes], bool] | None = None) -> None:
        known = json.decode(record, type=EpochRecord) if record else None
        self.record = known or EpochRecord(0, 0, "", "", urandom(6).hex())
        self._is_same = is_same
        self._last: Sequence[bytes] | None = None
        self._appended = False
        """True where a message has changed within its epoch, so that the hash begins anew."""
        self._hash = blake2b(digest_size=12)

    def advance(self, messages: Sequence[bytes], signature: str) -> bool:
        """Take in the next answer; returns whether a new epoch began."""
        self._appended = False
        fresh = not self._continues(messages, signature)
        anew = fresh or self._appended or self._last is None
        if anew or self._last is None:
            self._hash, added = blake2b(digest_size=12), messages
        else:
            added = messages[len(self._last) :]
        if anew or added:
            _update(self._hash, added)
            epoch = self.record.epoch + 1 if fresh else self.record.epoch
            self.record = EpochRecord(
                epoch, len(messages), self._hash.hexdigest(), signature, self.record.name
            )
            self._last = messages
        return fresh

    def begins(self, messages: Sequence[bytes], signature: str) -> bool:
        """Whether `advance` would begin a new epoch with this answer."""
        return not self._continues(messages, signature)

    def encoded(self) -> bytes:
        """The record as it is kept."""
        return json.encode(self.record)

    def _continues(self, messages: Sequence[bytes], signature: str) -> bool:
        if not self.record.epoch or signature != self.record.signature:
            return False
        if self._last is None:
            known = blake2b(digest_size=12)
            _update(known, messages[: self.record.count])
            return len(messages) >= self.record.count and known.hexdigest() == self.record.chain
        longer = len(messages) >= len(self._last)
        return longer and all(
            a is b or a == b or self._has_got_more(a, b) for a, b in zip(self._last, messages, strict=False)
        )

    def _has_got_more(self, before: bytes, now: bytes) -> bool:
        self._appended = self._is_same is not None and self._is_same(before, now)
        return self._appended


def _update(digest: blake2b, messages: Sequence[bytes]) -> None:
    for message in messages:
        digest.update(len(message).to_bytes(8, "big"))
        digest.update(message)
