"""Remembers which messages are replaced, so that they stay so from answer to answer.

A result that is whole in one answer and a stub in the next would change the start of the list each time. So
once replaced, it stays so, also under a larger budget and in the same words; the history keeps it whole.
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
"""A reference that keeps more than this of a result's tokens is not worth it."""
MOST = 1_000
"""Replaced messages of a session that are remembered, in addition to those that are needed."""
ONE = 600
"""Bytes that one of them takes: as it is remembered, and as it was encoded last."""


class Stubs:
    """The replaced messages of one session; those with results are known by their fingerprint.

    They may not be stored yet, so that their ids change.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.large = 0
        """Tokens beyond which results stand as references with a part of their text; 0 for never."""
        self.grown = False
        """Whether such references came up that are not kept yet."""
        self._known: dict[str, Replacement] = {}
        self._smallest = NONE_YET
        """Characters of the smallest result that was ever replaced."""
        self._shown: dict[str, Entry] = {}
        self._kept: bytes | None = None
        """What was loaded or encoded last."""

    @property
    def weight(self) -> int:
        """Memory that the replacements take, in bytes, roughly."""
        shown = sum(len(entry.raw) for entry in self._shown.values())
        whole = sum(len(entry.whole.raw) for entry in self._shown.values() if entry.whole)
        return ONE * (len(self._known) + len(self._shown)) + shown + whole

    def load(self, kept: bytes | None) -> None:
        """Take over what `encoded` gave; what cannot be read is as good as nothing."""
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
        """What is to be kept of the stubs."""
        self.grown = False
        self._kept = json.encode((self._known, self._smallest))
        return self._kept

    def add(self, entries: Iterable[Entry]) -> bool:
        """Keep to these stand-ins from now on; false where none is new."""
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
        """Send these messages whole again, those beyond the limit for large results apart; false if none."""
        keys = {_key(entry.whole) for entry in entries if entry.whole}
        return self._drop(key for key in keys if key in self._known)

    def restore_all(self) -> bool:
        """Send every message whole again, those beyond the limit for large results apart; false if none."""
        return self._drop(self._known)

    def _drop(self, keys: Iterable[str]) -> bool:
        dropped = {key for key in keys if self._known[key].how != "payload"}
        if dropped:
            self._known = {key: kept for key, kept in self._known.items() if key not in dropped}
        return bool(dropped)

    def forget_all_but(self, entries: Iterable[Entry]) -> None:
        """Where much is remembered, forget what these entries do not need."""
        if len(self._known) > MOST:
            needed = {_key(entry.whole) for entry in entries if entry.whole}
            self._known = {key: kept for key, kept in self._known.items() if key in needed}

    def renewed(self, entries: Iterable[Entry]) -> dict[Entry, Replacement]:
        """Replacements that name another id than the message has by now: it was stored since."""
        found: dict[Entry, Replacement] = {}
        for entry in entries:
            whole = entry.whole
            known = self._known.get(_key(whole)) if whole else None
            if whole and known and (known.ref, known.turn_id) != (whole.message_id, whole.turn_id):
                found[whole] = structs.replace(known, ref=whole.message_id, turn_id=whole.turn_id)
        return found

    def known(self, whole: Entry) -> Replacement | None:
        """How a message is replaced, `None` where it is not."""
        return self._known.get(_key(whole)) if self._known else None

    def shown(self, entry: Entry) -> Entry:
        """The entry as it goes out: itself, or its stand-in."""
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
        """Let a large result stand as a reference from its first answer on."""
        if entry.reading.results and (key := _key(entry)) not in self._known:
            replacement = Replacement("payload", entry.message_id, entry.turn_id, entry.tokens)
            if self._writer.replaced(entry, replacement).tokens < entry.tokens * WORTH:
                self._known[key] = replacement
                self._note_size(entry)
                self.grown = True

    def forget_shown(self) -> None:
        """Write the stand-ins anew: their words have changed."""
        self._shown.clear()

    def _note_size(self, whole: Entry) -> None:
        if whole.reading.results:
            self._smallest = min(_size(whole), self._smallest)


def _key(entry: Entry) -> str:
    """Stands for a message with results: another call of the same tool may have the same result."""
    if entry.reading.results:
        return str(entry.keys.call ^ entry.keys.text)
    return f"m{entry.message_id}"


def _size(entry: Entry) -> int:
    return sum(len(result.text) for result in entry.reading.results)
