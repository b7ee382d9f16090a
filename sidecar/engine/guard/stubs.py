"""Remembers which tool results were too large for a budget, so that they stay replaced.

A result that is whole in one answer and a stub in the next would change the start of the list each time. So
once replaced, it stays so, also under a larger budget; the history keeps it whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import json

from sidecar.engine.entry import Entry
from sidecar.engine.guard.slot import Writer


class Stubs:
    """The replaced results of one session, known by their fingerprint: they may not be stored yet."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._known: set[int] = set()
        self._smallest = 0
        """Characters of the smallest result that was ever replaced."""
        self._shown: dict[str, Entry] = {}

    def load(self, kept: bytes | None) -> None:
        """Take over what `encoded` gave."""
        known, self._smallest = json.decode(kept, type=tuple[set[int], int]) if kept else (set[int](), 0)
        if known != self._known:
            self._known, self._shown = known, {}

    def encoded(self) -> bytes:
        """What is to be kept of the stubs."""
        return json.encode((sorted(self._known), self._smallest))

    def add(self, entries: Iterable[Entry]) -> bool:
        """Keep to these stand-ins from now on; false where none is new."""
        new = {_key(whole): _size(whole) for entry in entries if (whole := entry.whole)}
        new = {key: size for key, size in new.items() if key not in self._known}
        if not new:
            return False
        smallest = min(new.values())
        self._smallest = min(smallest, self._smallest) if self._known else smallest
        self._known |= new.keys()
        return True

    def shown(self, entry: Entry) -> Entry:
        """The entry as it goes out: itself, or its stand-in."""
        if not self._known or not entry.reading.results or _size(entry) < self._smallest:
            return entry
        if _key(entry) not in self._known:
            return entry
        known = self._shown.get(entry.message_id)
        if known is None or known.whole is not entry:
            known = self._shown[entry.message_id] = self._writer.stub(entry)
        return known


def _key(entry: Entry) -> int:
    """Stands for a message with results: another call of the same tool may have the same result."""
    return entry.keys.call ^ entry.keys.text


def _size(entry: Entry) -> int:
    return sum(len(result.text) for result in entry.reading.results)
