"""The store under test, with shortcuts for the calls that checks make most."""

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
"""A position after every other."""


class StorePlace(Protocol):
    """Holds the data of one check; empty at first."""

    def store(self, extract: Extract) -> SessionStore:
        """Create a store on this data, not yet open; further calls create more stores on the same data.

        `extract` returns the searchable parts of a message body.
        """
        ...

    def remove(self) -> None:
        """Erase the data; called once, after every store on it is closed."""
        ...


MakePlace = Callable[[], StorePlace]
"""Creates a fresh place; its attribute `capabilities`, if any, names the capabilities of its stores."""


class Subject:
    """An open store without sessions, and further stores on the same data."""

    def __init__(self, place: StorePlace) -> None:
        self._place = place
        self._opened: list[SessionStore] = []
        self.store: SessionStore

    async def open(self) -> None:
        """Open the store."""
        self.store = await self.another()

    async def another(self) -> SessionStore:
        """Open another store on the same data."""
        store = self._place.store(extract)
        await store.open()
        self._opened.append(store)
        return store

    async def reopen(self) -> None:
        """Close the store, and replace it with a new one on the same data."""
        await self.store.close()
        self.store = await self.another()

    async def close(self) -> None:
        """Close every store."""
        for store in self._opened:
            await store.close()

    async def write(self, write: Write) -> Any:
        """Perform a write and return its result."""
        return await self.store.write(write)

    async def append(self, ref: SessionRef, *messages: NewMessage | str, **options: Any) -> AppendResult:
        """Append messages and return the result; a string becomes a user message."""
        return await append_to(self.store, ref, messages, **options)

    async def messages(self, ref: SessionRef, first: int = 1, last: int = END) -> list[StoredMessage]:
        """The stored messages from position `first` to `last`, by default all."""
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
        """A buffer on the store."""
        return Buffer(cast(HoldsBuffers, store or self.store), namespace, engine)

    async def search(self, text: str, kind: SearchKind = "words", **members: Any) -> SearchResult:
        """Search one session, by default `REF`."""
        ref: SessionRef = members.pop("ref", REF)
        searching = cast(SessionSearch, self.store)
        return await searching.search(ref, SearchQuery(text=text, kind=kind, **members))

    async def positions(self, text: str, kind: SearchKind = "words", **members: Any) -> list[int]:
        """The positions of the hits of a search."""
        return [hit.position for hit in (await self.search(text, kind, **members)).hits]


async def append_to(
    store: SessionStore, ref: SessionRef, messages: Iterable[NewMessage | str], **options: Any
) -> AppendResult:
    """Append messages to a store and return the result; a string becomes a user message."""
    made = [user(message) if isinstance(message, str) else message for message in messages]
    options.setdefault("message_format", "openai")
    return await store.write(Append(ref, made, **options))


def texts(messages: Iterable[StoredMessage]) -> list[str]:
    """The bodies of messages as text."""
    return [message.body.decode() for message in messages]


def providing(make_place: MakePlace) -> Provide[Subject]:
    """Provide every check with a subject on a fresh place."""

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
    """The capabilities that a place declares."""
    return tuple(getattr(make_place, "capabilities", ()))


CAPABILITIES = {
    "durable": "acknowledged writes are there when the store is opened again",
    "shared": "two stores may be open on the same data, also in different processes",
    "search": "`SessionSearch`: words and literals",
    "regex": "`SessionSearch` with regular expressions of RE2",
    "buffer": "the writes and reads that buffers are built on",
}
"""Optional features that a store may declare."""

SUITE: Suite[Subject] = Suite("store", CAPABILITIES)
check = SUITE.check
"""Adds a check to the suite."""
