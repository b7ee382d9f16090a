"""The timeline of a session: its stored messages as entries, with unstored ones of a call behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import cast

from sidecar.engine.entry import Entry
from sidecar.engine.guard.stubs import Stubs
from sidecar.engine.session import Tail
from sidecar.messages.contract import Dialect, IdentityKeys, Reading, Role
from sidecar.store.contract import SessionStore
from sidecar.store.stored import SessionHead, SessionRef, StoredMessage

CHUNK = 128
"""Messages that are read at a time when going back."""
ENTRY_OVERHEAD = 1024
"""Bytes that a message in memory takes in addition to its text, once it was read: as measured."""
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
        self._version: tuple[int, int] = (0, 0)
        self._system: tuple[int, list[Entry]] | None = None
        self._changed_ms = 0
        self.losses = 0
        """Times that the store no longer had what is cached, as after a restore."""

    async def refresh(self) -> None:
        """Take in what happened to the session since the request at hand began."""
        head = await self._store.session(self._ref)
        if head is None:
            self.forget()
        else:
            await self.follow(head)

    async def follow(self, head: SessionHead) -> None:
        """Take in what was appended, and forget everything where the history changed otherwise.

        The newest message is compared with the store whenever the session has changed. A store that was
        restored from a backup, or failed over to a server that was behind, has another one there, or none.
        """
        version = (head.uid, head.revision)
        if version != self._version:
            self.forget()
            self._version = version
        if not self._entries or head.updated_ms == self._changed_ms:
            self._changed_ms = head.updated_ms
            return
        newest = self._entries[-1]
        is_far = head.message_count - newest.place > CHUNK * 8
        read = await self._read(newest.place, newest.place if is_far else head.message_count)
        if not self._entries or self._entries[-1] is not newest:  # somebody else was faster
            return
        self._changed_ms = head.updated_ms
        if not (read and _is_same(read[0], newest)):
            self.forget()
            again = await self._store.session(self._ref)
            self.losses += again is not None and (again.uid, again.revision) == version
        elif is_far:
            self.forget()
        else:
            self._add(read[1:])

    @property
    def weight(self) -> int:
        """Memory that the entries take, in bytes, roughly."""
        return 2 * self._bytes + ENTRY_OVERHEAD * len(self._entries)

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

    def start_of(self, turn: int) -> int | None:
        """The position at which a turn begins, where the cached entries show that."""
        start: int | None = None
        for entry in reversed(self._entries):
            if entry.turn < turn:
                return start
            if entry.turn == turn:
                start = entry.place
        return start if start == 1 else None

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


def _is_same(one: Entry, other: Entry) -> bool:
    return (one.message_id, one.timestamp_ms, one.raw) == (other.message_id, other.timestamp_ms, other.raw)


class SessionTimeline:
    """Stored positions 1 to `base`, then `live`, which stands in for everything stored after them."""

    def __init__(
        self,
        store: SessionStore,
        ref: SessionRef,
        stored: StoredEntries,
        count: int,
        base: int | None = None,
        live: Sequence[Entry] = (),
    ) -> None:
        self._store = store
        self._ref = ref
        self._stored = stored
        self._count = count
        self._base = count if base is None else base
        self._live = live
        self._front: Sequence[Entry] = ()
        self._hidden: frozenset[int] = frozenset()
        self.stubs: Stubs | None = None
        """Results that are to be shown as stubs."""

    def begin_with(self, front: Sequence[Entry], hidden: Iterable[int]) -> None:
        """Let the host's system messages stand in front of everything, and stored positions be left out."""
        self._front = front
        self._hidden = frozenset(hidden)

    @property
    def live_count(self) -> int:
        """Messages of the host's own list."""
        return len(self._live) + len(self._front)

    async def tail(self, tokens: int) -> Tail:
        """The newest entries, going back until they hold more than `tokens` tokens, or to the start."""
        picked: list[Entry] = []
        spent, fresh_turn = 0, False
        for entry in reversed(self._live):
            if not (entry.heartbeat and fresh_turn):
                picked.append(self._shown(entry))
                spent += picked[-1].tokens
                if spent > tokens:
                    return Tail(picked[::-1], whole=False)
            fresh_turn = fresh_turn or entry.opens_turn
        last = self._base
        while last >= 1:
            first = max(1, last - CHUNK + 1)
            for entry in reversed(await self._stored_up_to(last, first)):
                if not (entry.heartbeat and fresh_turn):
                    picked.append(self._shown(entry))
                    spent += picked[-1].tokens
                    if spent > tokens:
                        return Tail(picked[::-1], whole=False)
                fresh_turn = fresh_turn or entry.opens_turn
            last = first - 1
        picked += map(self._shown, reversed(self._front))
        return Tail(picked[::-1], whole=True)

    async def system(self) -> list[Entry]:
        """The system messages; those of the host's list replace stored ones."""
        live = [*self._front, *(entry for entry in self._live if entry.role == "system")]
        if live or not self._count:
            return live
        return [e for e in await self._stored.system(self._count) if e.place <= self._base]

    async def opener(self, turn: int) -> Entry | None:
        """The user message that opened a turn."""
        for entry in reversed(self._live):
            if entry.turn == turn and entry.opens_turn:
                return entry
        start = self._stored.start_of(turn)
        if start is None and self._base:
            start = await self._store.turn_start(self._ref, turn)
        while start is not None and start <= self._base:
            for entry in await self._stored.up_to(min(start + 7, self._base), start):
                if entry.turn != turn:
                    return None
                if entry.opens_turn:
                    return entry
            start += 8
        return None

    async def resolve(self, message_id: str) -> str | None:
        """The id that a message has on the timeline now, `None` where it is not there (any more)."""
        await self._stored.refresh()
        found = await self._find(message_id)
        if found is None and (name := made_up_in(message_id)) is not None:
            shown = (*self._front, *self._live)
            alike = (e for e in reversed(shown) if made_up_name(e.reading, e.keys) == name)
            found = next(alike, None) or await self._stored.find_named(name, self._base)
        return found.message_id if found else None

    async def before(self, message_id: str, limit: int, since: str | None = None) -> list[Entry]:
        """The `limit` entries in front of a message, oldest first, back to `since` (included) at most."""
        end = await self._find(message_id)
        if end is None:
            return []
        begin = await self._find(since) if since else None
        floor = begin.place if begin else 0
        live = [e for e in self._live if floor <= e.place < end.place][-limit:]
        last = min(end.place - 1, self._base)
        first = max(floor, last - (limit - len(live)) + 1, 1)
        return [self._shown(entry) for entry in (*await self._stored_up_to(last, first), *live)]

    async def around(self, message_id: str, reach: int) -> list[Entry]:
        """The entries at most `reach` places in front of a message or behind it, itself included."""
        centre = await self._find(message_id)
        if centre is None:
            return []
        first, last = centre.place - reach, centre.place + reach
        stored = await self._stored_up_to(min(last, self._base), max(first, 1))
        live = [entry for entry in self._live if first <= entry.place <= last]
        return [self._shown(entry) for entry in (*stored, *live)]

    async def find(self, message_id: str) -> Entry | None:
        """The entry of that id as the timeline shows it, `None` where it is not there."""
        entry = await self._find(message_id)
        return self._shown(entry) if entry else None

    def _shown(self, entry: Entry) -> Entry:
        return self.stubs.shown(entry) if self.stubs else entry

    async def _stored_up_to(self, last: int, first: int) -> Sequence[Entry]:
        entries = await self._stored.up_to(last, first)
        return [e for e in entries if e.place not in self._hidden] if self._hidden else entries

    async def _find(self, message_id: str) -> Entry | None:
        for entry in chain(reversed(self._live), reversed(self._front)):
            if entry.message_id == message_id:
                return entry
        found = await self._stored.find(message_id) if self._base else None
        return found if found and found.place <= self._base else None
