"""The `BufferStore` on top of a session store's writes and reads."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from sidecar.store.buffer import (
    AddInjectedId,
    BufferPlace,
    BufferRows,
    ClaimEpisodes,
    ClearInjectedIds,
    DropEpisodes,
    Episode,
    PushEpisode,
)
from sidecar.store.errors import StoreUnavailable
from sidecar.store.writes import Write

_T = TypeVar("_T")


class HoldsBuffers(Protocol):
    """A store that buffers can stand on."""

    async def write(self, write: Write) -> Any:
        """See `SessionStore`."""
        ...

    async def read_buffers(self, question: Callable[[BufferRows], _T]) -> _T:
        """Ask the buffers, in one consistent state."""
        ...


class Buffer:
    """The buffer of one engine in one namespace."""

    def __init__(self, store: HoldsBuffers, namespace: str, engine: str) -> None:
        self._store: HoldsBuffers | None = store
        self._place = BufferPlace(namespace, engine)
        self._holder = os.urandom(12).hex()

    async def push(self, payload: bytes, session_id: str, session_key: str | None = None) -> int:
        """See `BufferStore`."""
        return await self._open().write(PushEpisode(self._place, payload, session_id, session_key))

    async def get_all(self) -> list[Episode]:
        """See `BufferStore`."""
        return await self._open().read_buffers(lambda rows: rows.episodes(self._place))

    async def count(self) -> int:
        """See `BufferStore`."""
        return await self._open().read_buffers(lambda rows: rows.count(self._place))

    async def clear(self) -> int:
        """See `BufferStore`."""
        return await self._open().write(DropEpisodes(self._place, self._holder, None))

    async def claim(self, limit: int, lease_ms: int) -> list[Episode]:
        """See `BufferStore`.

        Raises:
            ValueError: the limit or the lease is not positive.
        """
        if limit < 1 or lease_ms < 1:
            raise ValueError(f"a claim of {limit} episodes for {lease_ms} ms can hold nothing")
        return await self._open().write(ClaimEpisodes(self._place, self._holder, limit, lease_ms))

    async def delete_by_rowids(self, rowids: Sequence[int]) -> int:
        """See `BufferStore`."""
        return await self._open().write(DropEpisodes(self._place, self._holder, list(rowids)))

    async def has_injected_id(self, session_id: str, item_id: str) -> bool:
        """See `BufferStore`."""
        return await self._open().read_buffers(
            lambda rows: rows.has_injected_id(self._place, session_id, item_id)
        )

    async def add_injected_id(self, session_id: str, item_id: str) -> bool:
        """See `BufferStore`."""
        return await self._open().write(AddInjectedId(self._place, session_id, item_id))

    async def clear_injected_ids(self, session_id: str, item_ids: Sequence[str] | None = None) -> None:
        """See `BufferStore`."""
        listed = None if item_ids is None else list(item_ids)
        await self._open().write(ClearInjectedIds(self._place, session_id, listed))

    async def close(self) -> None:
        """See `BufferStore`."""
        self._store = None

    def _open(self) -> HoldsBuffers:
        if self._store is None:
            raise StoreUnavailable("the buffer is closed")
        return self._store
