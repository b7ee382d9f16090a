"""What engines see of a session: stored history, then the host's own list where it sent one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from sidecar.engine.entry import Entry
from sidecar.engine.guard.stubs import Stubs
from sidecar.engine.session import Tail
from sidecar.server.sessions.stored import CHUNK, StoredEntries, made_up_in, made_up_name
from sidecar.store.contract import SessionStore
from sidecar.store.stored import SessionRef

if TYPE_CHECKING:
    from sidecar.server.sessions.live import LiveSession


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
        start = await self._store.turn_start(self._ref, turn) if self._base else None
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


def stored_timeline(live: LiveSession) -> SessionTimeline:
    """What is stored of a session, without anything that a host shows beyond it."""
    return SessionTimeline(live.store, live.ref, live.stored, live.message_count)
