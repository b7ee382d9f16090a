"""Buffers of episodes beside the sessions: their records, writes and rows, and one engine's buffer."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from sidecar.store.errors import StoreUnavailable
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Write


class BufferPlace(NamedTuple):
    """To whom a buffer belongs: engines and namespaces never see each other's."""

    namespace: str
    engine: str


class Episode(NamedTuple):
    """One buffered episode."""

    rowid: int
    """Rises with every push to the store, and is never used again."""
    payload: bytes
    session_id: str
    session_key: str | None
    pushed_ms: int


class PushEpisode(Write):
    """Buffer an episode. `result`: its row id."""

    __slots__ = ("payload", "place", "session_id", "session_key")
    verb = "push_episode"
    result: int

    def __init__(self, place: BufferPlace, payload: bytes, session_id: str, session_key: str | None) -> None:
        super().__init__()
        self.place = place
        self.payload = payload
        self.session_id = session_id
        self.session_key = session_key


class ClaimEpisodes(Write):
    """Lease the oldest episodes that nobody holds. `result`: them, oldest first."""

    __slots__ = ("holder", "lease_ms", "limit", "place")
    verb = "claim_episodes"
    result: list[Episode]

    def __init__(self, place: BufferPlace, holder: str, limit: int, lease_ms: int) -> None:
        super().__init__()
        self.place = place
        self.holder = holder
        self.limit = limit
        self.lease_ms = lease_ms


class DropEpisodes(Write):
    """Remove episodes (`None`: all), but none that another holder has leased. `result`: how many."""

    __slots__ = ("holder", "place", "rowids")
    verb = "drop_episodes"
    result: int

    def __init__(self, place: BufferPlace, holder: str, rowids: Sequence[int] | None) -> None:
        super().__init__()
        self.place = place
        self.holder = holder
        self.rowids = rowids


class AddInjectedId(Write):
    """Note that an item was injected into a session. `result`: true where it is new."""

    __slots__ = ("item_id", "place", "session_id")
    verb = "add_injected_id"
    result: bool

    def __init__(self, place: BufferPlace, session_id: str, item_id: str) -> None:
        super().__init__()
        self.place = place
        self.session_id = session_id
        self.item_id = item_id


class ClearInjectedIds(Write):
    """Forget what was injected into a session: these items, or (`None`) all. `result`: `None`."""

    __slots__ = ("item_ids", "place", "session_id")
    verb = "clear_injected_ids"
    result: None

    def __init__(self, place: BufferPlace, session_id: str, item_ids: Sequence[str] | None = None) -> None:
        super().__init__()
        self.place = place
        self.session_id = session_id
        self.item_ids = item_ids


class BufferRows(Protocol):
    """The small operations on buffers that a kind of store must offer; changes belong to the open step."""

    def push(self, write: PushEpisode) -> int:
        """Keep an episode; its row id."""
        ...

    def claim(self, write: ClaimEpisodes) -> list[Episode]:
        """Lease free episodes, or such whose lease has run out."""
        ...

    def drop(self, write: DropEpisodes) -> int:
        """Erase episodes that no other holder has leased; how many."""
        ...

    def add_injected_id(self, place: BufferPlace, session_id: str, item_id: str) -> bool:
        """Keep an id; true where it is new."""
        ...

    def clear_injected_ids(self, write: ClearInjectedIds) -> None:
        """Erase ids of a session."""
        ...

    def copy_injected_ids(self, source: SessionRef, target: SessionRef) -> None:
        """Give a session those of another, in every engine's buffer."""
        ...

    def drop_session(self, ref: SessionRef) -> None:
        """Erase the episodes and ids of a session, in every engine's buffer."""
        ...

    def episodes(self, place: BufferPlace) -> list[Episode]:
        """All episodes, oldest first."""
        ...

    def count(self, place: BufferPlace) -> int:
        """How many there are."""
        ...

    def has_injected_id(self, place: BufferPlace, session_id: str, item_id: str) -> bool:
        """Whether the id is kept."""
        ...


class BufferStore(Protocol):
    """The episodes that an engine has yet to flush, and the ids of the items it has injected.

    Whatever a method has returned from is kept as durably as the store keeps anything. Every method raises
    `StoreUnavailable` where the store cannot serve.
    """

    async def push(self, payload: bytes, session_id: str, session_key: str | None = None) -> int:
        """Buffer an episode; its row id."""
        ...

    async def get_all(self) -> list[Episode]:
        """All episodes, oldest first, leased or not."""
        ...

    async def count(self) -> int:
        """How many episodes there are, leased or not."""
        ...

    async def clear(self) -> int:
        """Remove all episodes that no other process has leased; how many."""
        ...

    async def claim(self, limit: int, lease_ms: int) -> list[Episode]:
        """Lease up to `limit` of the oldest free episodes for `lease_ms` milliseconds.

        Until then no other claim gets them, not even one of this buffer. Delete them when they are flushed;
        those that are not deleted in time are free again.

        Raises:
            ValueError: the limit or the lease is not positive.
        """
        ...

    async def delete_by_rowids(self, rowids: Sequence[int]) -> int:
        """Remove these episodes; how many there were.

        Fewer than asked for means that a lease has run out, and another process has them now.
        """
        ...

    async def has_injected_id(self, session_id: str, item_id: str) -> bool:
        """Whether the item was injected into the session."""
        ...

    async def add_injected_id(self, session_id: str, item_id: str) -> bool:
        """Note an item as injected; true where it was not before."""
        ...

    async def clear_injected_ids(self, session_id: str, item_ids: Sequence[str] | None = None) -> None:
        """Forget that these items were injected into the session; `None`: whatever was."""
        ...

    async def close(self) -> None:
        """Let go of the buffer; the store under it stays open. May be called twice."""
        ...


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
