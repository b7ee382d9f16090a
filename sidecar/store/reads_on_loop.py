"""The reads of `SessionStore`, by way of one method that tells where a store answers them."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeVar

from sidecar.store.buffer import BufferRows
from sidecar.store.primitives import RowReads
from sidecar.store.reading import (
    read_keyed,
    read_message,
    read_messages,
    read_messages_of_role,
    read_turn_start,
)
from sidecar.store.search import SearchState
from sidecar.store.spawn import Spawn, SpawnRows
from sidecar.store.stored import (
    KeyedMessage,
    SessionHead,
    SessionRef,
    SessionSettings,
    StoredMessage,
    SummaryNode,
)

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
    def advancement_known(self, ref: SessionRef, advancement_key: str) -> bool: ...
    def without_facts(self, limit: int) -> tuple[Lacking, bool]:
        """What a short look finds, and whether there is nothing behind it to look at."""
        ...


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
