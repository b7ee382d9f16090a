"""A store under test on a place of its own, with the calls that checks make most."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Any, Protocol, cast

from sidecar.conformance.kit import Provide, Suite
from sidecar.conformance.store.samples import REF, extract, user
from sidecar.store.buffer import Buffer, BufferStore, HoldsBuffers
from sidecar.store.contract import SessionStore
from sidecar.store.search import Extract, SearchKind, SearchQuery, SearchResult, SessionSearch
from sidecar.store.stored import NewMessage, SessionRef, StoredMessage
from sidecar.store.writes import Append, AppendResult, Write

END = 1 << 30
"""A position behind every other."""


class StorePlace(Protocol):
    """Where the data of one check is kept; empty at first."""

    def store(self, extract: Extract) -> SessionStore:
        """A store on this data, not yet opened. Each call makes another on the same data.

        `extract` reads what is searched of a message.
        """
        ...

    def remove(self) -> None:
        """Erase the data; called once, when every store on it is closed."""
        ...


MakePlace = Callable[[], StorePlace]
"""Makes a fresh place. May have an attribute `capabilities`: the names of what its stores offer."""


class Subject:
    """An open store without sessions, and others on the same data where a check asks for them."""

    def __init__(self, place: StorePlace) -> None:
        self._place = place
        self._opened: list[SessionStore] = []
        self.store: SessionStore

    async def open(self) -> None:
        """Open the store."""
        self.store = await self.another()

    async def another(self) -> SessionStore:
        """One more store on the same data, open."""
        store = self._place.store(extract)
        await store.open()
        self._opened.append(store)
        return store

    async def reopen(self) -> None:
        """Close the store, and open one on the same data in its place."""
        await self.store.close()
        self.store = await self.another()

    async def close(self) -> None:
        """Close every store."""
        for store in self._opened:
            await store.close()

    async def write(self, write: Write) -> Any:
        """The result of a write."""
        return await self.store.write(write)

    async def append(self, ref: SessionRef, *messages: NewMessage | str, **options: Any) -> AppendResult:
        """The result of an `Append`; a text stands for a user message."""
        return await append_to(self.store, ref, messages, **options)

    async def messages(self, ref: SessionRef, first: int = 1, last: int = END) -> list[StoredMessage]:
        """The stored messages, by default all."""
        return await self.store.messages(ref, first, last)

    async def texts(self, ref: SessionRef) -> list[str]:
        """The bodies of all messages."""
        return texts(await self.messages(ref))

    async def ids(self, ref: SessionRef) -> list[str]:
        """The ids of all messages."""
        return [message.message_id for message in await self.messages(ref)]

    async def turns(self, ref: SessionRef) -> list[str]:
        """The turn ids of all messages."""
        return [message.turn_id for message in await self.messages(ref)]

    def buffer(
        self, namespace: str = "host", engine: str = "recall", store: SessionStore | None = None
    ) -> BufferStore:
        """A buffer that stands on the store."""
        return Buffer(cast(HoldsBuffers, store or self.store), namespace, engine)

    async def search(self, text: str, kind: SearchKind = "words", **members: Any) -> SearchResult:
        """What a search of one session finds."""
        ref: SessionRef = members.pop("ref", REF)
        searching = cast(SessionSearch, self.store)
        return await searching.search(ref, SearchQuery(text=text, kind=kind, **members))

    async def positions(self, text: str, kind: SearchKind = "words", **members: Any) -> list[int]:
        """The positions that a search finds."""
        return [hit.position for hit in (await self.search(text, kind, **members)).hits]


async def append_to(
    store: SessionStore, ref: SessionRef, messages: Iterable[NewMessage | str], **options: Any
) -> AppendResult:
    """The result of an `Append` to a store; a text stands for a user message."""
    made = [user(message) if isinstance(message, str) else message for message in messages]
    options.setdefault("message_format", "openai")
    return await store.write(Append(ref, made, **options))


def texts(messages: Iterable[StoredMessage]) -> list[str]:
    """The bodies."""
    return [message.body.decode() for message in messages]


def providing(make_place: MakePlace) -> Provide[Subject]:
    """Gives every check a subject on a fresh place."""

    @asynccontextmanager
    async def provide() -> AsyncGenerator[Subject]:
        place = make_place()
        try:
            subject = Subject(place)
            try:
                await subject.open()
                yield subject
            finally:
                await subject.close()
        finally:
            place.remove()

    return provide


def declared_by(make_place: MakePlace) -> Collection[str]:
    """The capabilities that a place declares by itself."""
    return tuple(getattr(make_place, "capabilities", ()))


CAPABILITIES = {
    "durable": "what was acknowledged is there when the store is opened again",
    "shared": "two stores may be open on the same data, also in different processes",
    "search": "`SessionSearch`: words and literals",
    "regex": "`SessionSearch` with regular expressions of RE2",
    "buffer": "the writes and reads that buffers stand on",
}
"""What a store may declare to offer, beyond keeping sessions."""

SUITE: Suite[Subject] = Suite("store", CAPABILITIES)
check = SUITE.check
"""Adds a check to the suite."""
