"""Remembers which messages are replaced, so that they stay replaced in later answers.

A result that alternates between whole and stub would change the start of the list each time. So a replaced
result stays replaced by the same text, even under a larger budget; the history keeps the original.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from msgspec import DecodeError, json, structs

from sidecar.engine.entry import Entry
from sidecar.engine.guard.replacement import Replacement
from sidecar.engine.guard.slot import Writer

NONE_YET = 1 << 62
WORTH = 0.8
"""Maximum share of a result's tokens that a worthwhile reference may keep."""
MOST = 1_000
"""Number of replaced messages per session beyond which unneeded ones are forgotten."""
ONE = 600
"""Approximate bytes per remembered message, in memory and in its last encoding."""


class Stubs:
    """The replaced messages of one session.

    Messages with results are identified by fingerprint, because their ids change once they are stored.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.large = 0
        """Results larger than this, in tokens, become references with part of their text; 0 means never."""
        self.grown = False
        """Whether there are new references of this kind that are not stored yet."""
        self._known: dict[str, Replacement] = {}
        self._smallest = NONE_YET
        """Characters of the smallest result ever replaced."""
        self._shown: dict[str, Entry] = {}
        self._kept: bytes | None = None
        """The bytes last loaded or encoded."""

    @property
    def weight(self) -> int:
        """Approximate memory of the replacements, in bytes."""
        shown = sum(len(entry.raw) for entry in self._shown.values())
        whole = sum(len(entry.whole.raw) for entry in self._shown.values() if entry.whole)
        return ONE * (len(self._known) + len(self._shown)) + shown + whole

    def load(self, kept: bytes | None) -> None:
        """Load the bytes from `encoded`; unreadable ones count as empty."""
        if kept == self._kept:
            return
        self._kept = kept
        known: dict[str, Replacement] = {}
        self._smallest = NONE_YET
        if kept:
            with suppress(DecodeError):
                known, self._smallest = json.decode(kept, type=tuple[dict[str, Replacement], int])
        if known != self._known:
            self._known, self._shown = known, {}

    def encoded(self) -> bytes:
        """The replacements, encoded for storage."""
        self.grown = False
        self._kept = json.encode((self._known, self._smallest))
        return self._kept

    def add(self, entries: Iterable[Entry]) -> bool:
        """Keep these stand-ins from now on. Returns false if none is new."""
        new: dict[str, Replacement] = {}
        for entry in entries:
            if (whole := entry.whole) is not None:
                known = self._known.get(_key(whole))
                if known is None or (entry.how == "clear" and not known.final):
                    new[_key(whole)] = self._writer.clearing(whole)
                    self._note_size(whole)
        self._known |= new
        return bool(new)

    def replace(self, replacements: Mapping[Entry, Replacement]) -> None:
        """Replace these whole messages from now on."""
        for whole, replacement in replacements.items():
            self._known[_key(whole)] = replacement
            self._note_size(whole)

    def restore(self, entries: Iterable[Entry]) -> bool:
        """Send these messages whole again, except large payloads. Returns false if none changed."""
        keys = {_key(entry.whole) for entry in entries if entry.whole}
        return self._drop(key for key in keys if key in self._known)

    def restore_all(self) -> bool:
        """Send all messages whole again, except large payloads. Returns false if none changed."""
        return self._drop(self._known)

    def _drop(self, keys: Iterable[str]) -> bool:
        dropped = {key for key in keys if self._known[key].how != "payload"}
        if dropped:
            self._known = {key: kept for key, kept in self._known.items() if key not in dropped}
        return bool(dropped)

    def forget_all_but(self, entries: Iterable[Entry]) -> None:
        """If many replacements are remembered, forget those that these entries do not need."""
        if len(self._known) > MOST:
            needed = {_key(entry.whole) for entry in entries if entry.whole}
            self._known = {key: kept for key, kept in self._known.items() if key in needed}

    def renewed(self, entries: Iterable[Entry]) -> dict[Entry, Replacement]:
        """Updated replacements for messages whose id changed because they were stored since."""
        found: dict[Entry, Replacement] = {}
        for entry in entries:
            whole = entry.whole
            known = self._known.get(_key(whole)) if whole else None
            if whole and known and (known.ref, known.turn_id) != (whole.message_id, whole.turn_id):
                found[whole] = structs.replace(known, ref=whole.message_id, turn_id=whole.turn_id)
        return found

    def known(self, whole: Entry) -> Replacement | None:
        """The replacement of a message, or `None`."""
        return self._known.get(_key(whole)) if self._known else None

    def shown(self, entry: Entry) -> Entry:
        """The entry as sent: itself or its stand-in."""
        if entry.whole is not None:
            return entry
        if self.large and entry.tokens > self.large:
            self._refer(entry)
        if not self._known:
            return entry
        if entry.role == "user" and not entry.reading.results:
            replacement = self._known.get(f"m{entry.message_id}")
        elif not entry.reading.results or _size(entry) < self._smallest:
            return entry
        else:
            replacement = self._known.get(_key(entry))
        if replacement is None:
            return entry
        shown = self._shown.get(entry.message_id)
        if shown is None or shown.whole is not entry or shown.how != replacement.how:
            shown = self._shown[entry.message_id] = self._writer.replaced(entry, replacement)
        return shown

    def _refer(self, entry: Entry) -> None:
        """Replace a large result by a reference from its first answer on."""
        if entry.reading.results and (key := _key(entry)) not in self._known:
            replacement = Replacement("payload", entry.message_id, entry.turn_id, entry.tokens)
            if self._writer.replaced(entry, replacement).tokens < entry.tokens * WORTH:
                self._known[key] = replacement
                self._note_size(entry)
                self.grown = True

    def forget_shown(self) -> None:
        """Discard the written stand-ins, because their text has changed."""
        self._shown.clear()

    def _note_size(self, whole: Entry) -> None:
        if whole.reading.results:
            self._smallest = min(_size(whole), self._smallest)


def _key(entry: Entry) -> str:
    """Key of a message; with results, it includes the call, since another call may have the same result."""
    if entry.reading.results:
        return str(entry.keys.call ^ entry.keys.text)
    return f"m{entry.message_id}"


def _size(entry: Entry) -> int:
    return sum(len(result.text) for result in entry.reading.results)
