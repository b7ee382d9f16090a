"""The reads of `SessionStore`, for stores that answer them on the loop's own thread."""

import asyncio
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from sidecar.store.contract import (
    KeyedMessage,
    SessionHead,
    SessionRef,
    SessionSettings,
    StoredMessage,
    SummaryNode,
)
from sidecar.store.primitives import RowReads
from sidecar.store.reading import (
    read_keyed,
    read_message,
    read_messages,
    read_messages_of_role,
    read_turn_start,
)

Lacking = list[tuple[SessionRef, str, int, list[StoredMessage]]]
"""Messages without facts, in batches a session: ref, message format, revision, messages."""


class Lookups(RowReads, Protocol):
    """What such a store reads, each as the method of `SessionStore` with the same name says."""

    def session_by_key(self, namespace: str, session_key: str) -> SessionHead | None: ...
    def sessions(
        self, namespace: str | None, limit: int, cursor: str | None
    ) -> tuple[list[SessionHead], str | None]: ...
    def summaries(self, ref: SessionRef) -> list[SummaryNode]: ...
    def settings_of(self, namespace: str, scope: str, scope_id: str) -> SessionSettings: ...
    def state(self, ref: SessionRef, name: str) -> bytes | None: ...
    def advancement_known(self, ref: SessionRef, advancement_key: str) -> bool: ...
    def without_facts(self, limit: int) -> tuple[Lacking, bool]:
        """What a short look finds, and whether there is nothing behind it to look at."""
        ...


class ReadsOnLoop:
    """Every read of `SessionStore`, by way of `_view`."""

    def _view(self) -> AbstractContextManager[Lookups]:
        """One consistent state of the store for all reads inside.

        Raises:
            StoreUnavailable: the store is not open, or a read failed.
        """
        raise NotImplementedError

    async def session(self, ref: SessionRef) -> SessionHead | None:
        """See `SessionStore`."""
        with self._view() as reads:
            record = reads.session(ref)
            return None if record is None else record.head()

    async def session_by_key(self, namespace: str, session_key: str) -> SessionHead | None:
        """See `SessionStore`."""
        with self._view() as reads:
            return reads.session_by_key(namespace, session_key)

    async def sessions(
        self, namespace: str | None, limit: int, cursor: str | None
    ) -> tuple[list[SessionHead], str | None]:
        """See `SessionStore`."""
        with self._view() as reads:
            return reads.sessions(namespace, limit, cursor)

    async def messages(self, ref: SessionRef, first: int, last: int) -> list[StoredMessage]:
        """See `SessionStore`."""
        with self._view() as reads:
            return read_messages(reads, ref, first, last)

    async def messages_of_role(self, ref: SessionRef, role: str) -> list[StoredMessage]:
        """See `SessionStore`."""
        with self._view() as reads:
            return read_messages_of_role(reads, ref, role)

    async def message(self, ref: SessionRef, message_id: str) -> StoredMessage | None:
        """See `SessionStore`."""
        with self._view() as reads:
            return read_message(reads, ref, message_id)

    async def keyed(self, ref: SessionRef, first: int, last: int) -> list[KeyedMessage]:
        """See `SessionStore`."""
        with self._view() as reads:
            return read_keyed(reads, ref, first, last)

    async def turn_start(self, ref: SessionRef, turn: int) -> int | None:
        """See `SessionStore`."""
        with self._view() as reads:
            return read_turn_start(reads, ref, turn)

    async def without_facts(self, limit: int) -> Lacking:
        """See `SessionStore`."""
        while True:
            with self._view() as reads:
                found, complete = reads.without_facts(limit)
            if found or complete:
                return found
            await asyncio.sleep(0)

    async def summaries(self, ref: SessionRef) -> list[SummaryNode]:
        """See `SessionStore`."""
        with self._view() as reads:
            return reads.summaries(ref)

    async def settings(
        self, namespace: str, scope: Literal["session", "agent"], scope_id: str
    ) -> SessionSettings:
        """See `SessionStore`."""
        with self._view() as reads:
            return reads.settings_of(namespace, scope, scope_id)

    async def state(self, ref: SessionRef, name: str) -> bytes | None:
        """See `SessionStore`."""
        with self._view() as reads:
            return reads.state(ref, name)

    async def advancement_known(self, ref: SessionRef, advancement_key: str) -> bool:
        """See `SessionStore`."""
        with self._view() as reads:
            return reads.advancement_known(ref, advancement_key)
