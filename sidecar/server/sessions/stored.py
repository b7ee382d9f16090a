"""Entries of one session's stored messages, read backwards on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from sidecar.engine.entry import Entry
from sidecar.messages.contract import Dialect, IdentityKeys, Reading, Role
from sidecar.store.contract import SessionStore
from sidecar.store.stored import SessionHead, SessionRef, StoredMessage

CHUNK = 128
"""Messages that are read at a time when going back."""
KEPT_BYTES = 24 << 20
"""Raw bytes of messages that one session keeps in memory."""
_MADE_UP = "live-"


def made_up_name(reading: Reading, keys: IdentityKeys) -> str:
    """A name for a message until it is stored, by what will be known of it afterwards; not always unique."""
    known = reading.inner_id or f"{(keys.text ^ keys.call) & 0xFFFFFFFFFFFFFFFF:016x}"
    return f"{_MADE_UP}{known}"


def made_up_in(message_id: str) -> str | None:
    """The name in the id of a message that is not stored, `None` for any other id."""
    return message_id.rpartition(".")[0] if message_id.startswith(_MADE_UP) else None


class StoredEntries:
    """The newest entries of a session, contiguous, as far back as somebody asked for."""

    def __init__(
        self, store: SessionStore, ref: SessionRef, dialect: Dialect, cost: Callable[[Reading], int]
    ) -> None:
        self._store = store
        self._ref = ref
        self._dialect = dialect
        self._cost = cost
        self._entries: list[Entry] = []
        self._bytes = 0
        self._version = (0, 0)
        self._system: tuple[int, list[Entry]] | None = None

    async def refresh(self) -> None:
        """Take in what happened to the session since the request at hand began."""
        head = await self._store.session(self._ref)
        if head is None:
            self.forget()
        else:
            await self.follow(head)

    async def follow(self, head: SessionHead) -> None:
        """Take in what was appended, and forget everything where the history changed otherwise."""
        version = (head.uid, head.revision)
        if version != self._version:
            self.forget()
            self._version = version
        if self._entries and (newest := self._entries[-1].place) < head.message_count:
            if head.message_count - newest > CHUNK * 8:
                self.forget()
                self._version = version
                return
            read = await self._read(newest + 1, head.message_count)
            if self._entries and self._entries[-1].place == newest:  # nobody else was faster
                self._add(read)

    def forget(self) -> None:
        """Drop what is cached, for example because tokens are counted in another way now."""
        self._entries.clear()
        self._bytes = 0
        self._system = None

    async def up_to(self, last: int, first: int) -> list[Entry]:
        """The entries at positions `first` to `last`, both included."""
        if last < first or last < 1:
            return []
        if not self._entries or last > self._entries[-1].place or last < self._entries[0].place - CHUNK * 8:
            if self._entries:
                return await self._read(first, last)
            read = await self._read(max(1, last - CHUNK + 1), last)
            if not self._entries:
                self._add(read)
        while self._entries and self._entries[0].place > first:
            begin = self._entries[0].place
            older = await self._read(max(first, begin - CHUNK, 1), begin - 1)
            if not older:
                break
            if not self._entries or self._entries[0].place != begin:  # somebody else was faster
                continue
            self._entries[:0] = older
            self._bytes += sum(len(e.raw) for e in older)
        if not self._entries:
            return []
        begin = self._entries[0].place
        picked = self._entries[max(first - begin, 0) : last - begin + 1]
        self._trim()
        return picked

    async def system(self, count: int) -> list[Entry]:
        """The session's system messages."""
        if self._system is None or self._system[0] != count:
            stored = await self._store.messages_of_role(self._ref, "system")
            known = {e.message_id: e for e in self._system[1]} if self._system else {}
            self._system = (count, [known.get(m.message_id) or self.entry(m) for m in stored])
        return self._system[1]

    async def find(self, message_id: str) -> Entry | None:
        """One entry by its id."""
        for entry in reversed(self._entries):
            if entry.message_id == message_id:
                return entry
        stored = await self._store.message(self._ref, message_id)
        return self.entry(stored) if stored else None

    async def find_named(self, name: str, last: int) -> Entry | None:
        """The newest entry at `last` or before it that had this made-up name while it was not stored."""
        while last >= 1:
            first = max(1, last - CHUNK + 1)
            for entry in reversed(await self.up_to(last, first)):
                if made_up_name(entry.reading, entry.keys) == name:
                    return entry
            last = first - 1
        return None

    def entry(self, stored: StoredMessage) -> Entry:
        """A stored message as engines see it."""
        return Entry(
            message_id=stored.message_id,
            position=stored.position,
            place=stored.position,
            turn=stored.turn,
            turn_id=stored.turn_id,
            role=cast(Role, stored.role),
            timestamp_ms=stored.timestamp_ms,
            heartbeat=stored.heartbeat,
            raw=stored.body,
            dialect=self._dialect,
            cost=self._cost,
        )

    async def _read(self, first: int, last: int) -> list[Entry]:
        return [self.entry(stored) for stored in await self._store.messages(self._ref, first, last)]

    def _add(self, entries: list[Entry]) -> None:
        self._entries.extend(entries)
        self._bytes += sum(len(e.raw) for e in entries)

    def _trim(self) -> None:
        """Forget the oldest entries beyond the bound."""
        gone = 0
        while self._bytes > KEPT_BYTES and len(self._entries) - gone > CHUNK:
            self._bytes -= len(self._entries[gone].raw)
            gone += 1
        del self._entries[:gone]
