"""The reads of `SessionStore`, on the rows that a kind of store answers with.

Long ranges pass through here on the loop's thread, so the loops are flat.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeVar

from sidecar.store.admission import is_foreign, set_for
from sidecar.store.buffer import BufferRows
from sidecar.store.forks import owner_at, place_of_id, row_at, spans
from sidecar.store.primitives import RowReads
from sidecar.store.records import HEARTBEAT, MADE_UP, KeyedRow, MessageRow, SessionRecord, role_code, role_of
from sidecar.store.search import SearchState
from sidecar.store.spawn import Spawn, SpawnRows
from sidecar.store.stored import (
    Facts,
    KeyedMessage,
    SessionHead,
    SessionRef,
    SessionSettings,
    SessionSnapshot,
    StoredMessage,
    SummaryNode,
)


def encode_cursor(record: SessionRecord) -> str:
    """The cursor of the page behind this session."""
    return f"{record.updated_ms}.{record.uid}"


def decode_cursor(cursor: str) -> tuple[int, int]:
    """`updated_ms` and `uid` of the session that the page before ended with.

    Raises:
        ValueError: the cursor is not one of ours.
    """
    stamp, _, uid = cursor.partition(".")
    for number in (stamp, uid):
        if not (number.isascii() and number.isdigit()) or len(number) > 18:
            raise ValueError(f"{cursor[:60]!r} is no cursor of this list")
    return int(stamp), int(uid)


def stored_messages(owner: SessionRecord, rows: Sequence[MessageRow]) -> list[StoredMessage]:
    """Messages; `owner` is the session that owns the rows."""
    tag = owner.tag
    return [
        StoredMessage(
            position,
            name if name is not None else f"{tag}-{position if number is None else number}",
            turn,
            label if label is not None else f"t{turn}",
            role_of(role),
            timestamp_ms,
            flags & HEARTBEAT != 0,
            body,
        )
        for _, _, position, turn, role, timestamp_ms, flags, name, number, label, _, body in rows
    ]


def keyed_messages(owner: SessionRecord, rows: Sequence[KeyedRow]) -> list[KeyedMessage]:
    """Ids and facts; `owner` is the session that owns the rows."""
    tag = owner.tag
    return [
        KeyedMessage(
            position,
            name if name is not None else f"{tag}-{position if number is None else number}",
            None if flags & MADE_UP else name,
            inner_id,
            label if label is not None else f"t{turn}",
            None if tokens is None else Facts(tokens, *keys),
        )
        for position, turn, flags, name, number, label, inner_id, tokens, *keys in rows
    ]


def read_messages(reads: RowReads, ref: SessionRef, first: int, last: int) -> list[StoredMessage]:
    """See `SessionStore.messages`."""
    record = reads.session(ref)
    if record is None:
        return []
    found: list[StoredMessage] = []
    for owner, start, end in spans(reads, record, first, min(last, record.message_count)):
        found += stored_messages(owner, reads.rows(owner.uid, start, end))
    return found


def read_messages_of_role(reads: RowReads, ref: SessionRef, role: str) -> list[StoredMessage]:
    """See `SessionStore.messages_of_role`."""
    record = reads.session(ref)
    if record is None:
        return []
    code = role_code(role)
    found: list[StoredMessage] = []
    for owner, start, end in spans(reads, record, 1, record.message_count):
        found += stored_messages(owner, reads.rows_of_role(owner.uid, code, start, end))
    return found


def read_message(reads: RowReads, ref: SessionRef, message_id: str) -> StoredMessage | None:
    """See `SessionStore.message`."""
    record = reads.session(ref)
    place = None if record is None else place_of_id(reads, record, message_id)
    if record is None or place is None:
        return None
    owner, row = row_at(reads, record, place)
    return stored_messages(owner, [row])[0]


def read_keyed(reads: RowReads, ref: SessionRef, first: int, last: int) -> list[KeyedMessage]:
    """See `SessionStore.keyed`."""
    record = reads.session(ref)
    if record is None:
        return []
    found: list[KeyedMessage] = []
    for owner, start, end in spans(reads, record, first, min(last, record.message_count)):
        found += keyed_messages(owner, reads.keyed_rows(owner.uid, start, end))
    return found


def read_turn_start(reads: RowReads, ref: SessionRef, turn: int) -> int | None:
    """See `SessionStore.turn_start`. Turns never fall along a session, so halving finds the first of one."""
    record = reads.session(ref)
    if record is None or not 0 < turn <= record.turn_count:
        return None

    def turn_at(position: int) -> int:
        return reads.turn_at(owner_at(reads, record, position).uid, position)

    low, high = 1, record.message_count
    while low < high:
        middle = (low + high) // 2
        if turn_at(middle) < turn:
            low = middle + 1
        else:
            high = middle
    return low if turn_at(low) == turn else None


_UNSET = SessionSettings(None, None)
_T = TypeVar("_T")

Lacking = list[tuple[SessionRef, str, int, list[StoredMessage]]]
"""Messages without facts, in batches a session: ref, message format, revision, messages."""


class Lookups(RowReads, Protocol):
    """What a store reads, each as the method of `SessionStore` with the same name says."""

    @property
    def buffers(self) -> BufferRows: ...
    @property
    def spawns(self) -> SpawnRows: ...

    def session_by_key(
        self, namespace: str, session_key: str, agent_id: str | None
    ) -> SessionHead | None: ...
    def sessions(
        self, namespace: str | None, limit: int, cursor: str | None, agent_id: str | None
    ) -> tuple[list[SessionHead], str | None]: ...
    def idle_sessions(self, before_ms: int, limit: int) -> list[SessionHead]: ...
    def used_bytes(self) -> int: ...
    def search_state(self) -> SearchState: ...
    def summaries(self, ref: SessionRef, *, texts: bool = True) -> list[SummaryNode]: ...
    def summary_nodes(self, ref: SessionRef, node_ids: Sequence[str]) -> list[SummaryNode]: ...
    def settings_of(self, namespace: str, scope: str, scope_id: str) -> SessionSettings: ...
    def state(self, ref: SessionRef, name: str) -> bytes | None: ...
    def values(self, ref: SessionRef) -> dict[str, bytes | None]:
        """See `SessionSnapshot.values`."""
        ...

    def advancement_known(self, ref: SessionRef, advancement_key: str) -> bool: ...
    def without_facts(self, limit: int) -> tuple[Lacking, bool]:
        """What a short look finds, and whether there is nothing behind it to look at."""
        ...


def read_snapshot(reads: Lookups, ref: SessionRef, agent_id: str | None) -> SessionSnapshot:
    """See `SessionStore.snapshot`. A foreign session takes the same statements as a missing one."""
    namespace, session_id = ref
    record = reads.session(ref)
    owner = None if record is None else record.agent_id
    spawn = reads.spawns.of_session(ref) if record is None or is_foreign(owner, agent_id) else None
    waiting = _UNSET
    if agent_id is not None and owner != agent_id:
        waiting = reads.settings_of(namespace, "session", set_for(session_id, agent_id))
    agent = agent_id or owner or (spawn.child_agent_id if spawn else None)
    return SessionSnapshot(
        None if record is None else record.head(),
        None if spawn is None else spawn.child_agent_id,
        reads.settings_of(namespace, "session", session_id),
        waiting,
        reads.settings_of(namespace, "agent", agent) if agent else _UNSET,
        reads.values(ref),
    )


class SessionReads:
    """Every read of `SessionStore`, by way of `read`."""

    async def read(self, question: Callable[[Lookups], _T]) -> _T:
        """The answer to a question, from one consistent state of the store.

        Raises:
            StoreUnavailable: the store is not open, or cannot be read.
        """
        raise NotImplementedError

    async def read_buffers(self, question: Callable[[BufferRows], _T]) -> _T:
        """See `HoldsBuffers`."""
        return await self.read(lambda reads: question(reads.buffers))

    async def session(self, ref: SessionRef) -> SessionHead | None:
        """See `SessionStore`."""
        record = await self.read(lambda reads: reads.session(ref))
        return None if record is None else record.head()

    async def session_by_key(
        self, namespace: str, session_key: str, agent_id: str | None = None
    ) -> SessionHead | None:
        """See `SessionStore`."""
        return await self.read(lambda reads: reads.session_by_key(namespace, session_key, agent_id))

    async def sessions(
        self, namespace: str | None, limit: int, cursor: str | None, agent_id: str | None = None
    ) -> tuple[list[SessionHead], str | None]:
        """See `SessionStore`."""
        return await self.read(lambda reads: reads.sessions(namespace, limit, cursor, agent_id))

    async def idle_sessions(self, before_ms: int, limit: int) -> list[SessionHead]:
        """See `SessionStore`."""
        return await self.read(lambda reads: reads.idle_sessions(before_ms, limit))

    async def elected(self, task: str, for_s: float) -> bool:
        """See `SessionStore`; where no other machine shares the store, everybody may do the task."""
        del task, for_s
        return True

    async def used_bytes(self) -> int:
        """See `SessionStore`."""
        return await self.read(lambda reads: reads.used_bytes())

    async def search_state(self) -> SearchState:
        """See `SessionStore`."""
        return await self.read(lambda reads: reads.search_state())

    async def messages(self, ref: SessionRef, first: int, last: int) -> list[StoredMessage]:
        """See `SessionStore`."""
        return await self.read(lambda reads: read_messages(reads, ref, first, last))

    async def messages_of_role(self, ref: SessionRef, role: str) -> list[StoredMessage]:
        """See `SessionStore`."""
        return await self.read(lambda reads: read_messages_of_role(reads, ref, role))

    async def message(self, ref: SessionRef, message_id: str) -> StoredMessage | None:
        """See `SessionStore`."""
        return await self.read(lambda reads: read_message(reads, ref, message_id))

    async def keyed(self, ref: SessionRef, first: int, last: int) -> list[KeyedMessage]:
        """See `SessionStore`."""
        return await self.read(lambda reads: read_keyed(reads, ref, first, last))

    async def turn_start(self, ref: SessionRef, turn: int) -> int | None:
        """See `SessionStore`."""
        return await self.read(lambda reads: read_turn_start(reads, ref, turn))

    async def without_facts(self, limit: int) -> Lacking:
        """See `SessionStore`."""
        while True:
            found, complete = await self.read(lambda reads: reads.without_facts(limit))
            if found or complete:
                return found
            await asyncio.sleep(0)

    async def summaries(self, ref: SessionRef, *, texts: bool = True) -> list[SummaryNode]:
        """See `SessionStore`."""
        return await self.read(lambda reads: reads.summaries(ref, texts=texts))

    async def summary_nodes(self, ref: SessionRef, node_ids: Sequence[str]) -> list[SummaryNode]:
        """See `SessionStore`."""
        return await self.read(lambda reads: reads.summary_nodes(ref, node_ids))

    async def settings(
        self, namespace: str, scope: Literal["session", "agent"], scope_id: str
    ) -> SessionSettings:
        """See `SessionStore`."""
        return await self.read(lambda reads: reads.settings_of(namespace, scope, scope_id))

    async def state(self, ref: SessionRef, name: str) -> bytes | None:
        """See `SessionStore`."""
        return await self.read(lambda reads: reads.state(ref, name))

    async def snapshot(self, ref: SessionRef, agent_id: str | None = None) -> SessionSnapshot:
        """See `SessionStore`."""
        return await self.read(lambda reads: read_snapshot(reads, ref, agent_id))

    async def advancement_known(self, ref: SessionRef, advancement_key: str) -> bool:
        """See `SessionStore`."""
        return await self.read(lambda reads: reads.advancement_known(ref, advancement_key))

    async def spawns_of_key(self, namespace: str, child_key: str) -> list[Spawn]:
        """See `SessionStore`."""
        return await self.read(lambda reads: reads.spawns.of_key(namespace, child_key))

    async def spawn_of(self, ref: SessionRef) -> Spawn | None:
        """See `SessionStore`."""
        return await self.read(lambda reads: reads.spawns.of_session(ref))

    async def next_spawn_expiry(self) -> int | None:
        """See `SessionStore`."""
        return await self.read(lambda reads: reads.spawns.next_expiry())


class ReadsOnLoop(SessionReads):
    """The same for stores that answer on the loop's own thread, by way of `_view`."""

    def _view(self) -> AbstractContextManager[Lookups]:
        """One consistent state of the store for all reads inside.

        Raises:
            StoreUnavailable: the store is not open, or a read failed.
        """
        raise NotImplementedError

    async def read(self, question: Callable[[Lookups], _T]) -> _T:
        """See `SessionReads`."""
        with self._view() as reads:
            return question(reads)
