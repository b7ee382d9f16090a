"""The `SessionStore` that keeps everything in memory, and nothing longer than the process."""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Collection, Generator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, cast

import apsw

from sidecar.store.errors import StoreUnavailable
from sidecar.store.reads import ReadsOnLoop
from sidecar.store.search import Extract, SearchQuery, SearchResult, SessionsResult, plain_text
from sidecar.store.sqlite.connection import Connection
from sidecar.store.sqlite.lookups import SQLiteLookups
from sidecar.store.sqlite.schema import create
from sidecar.store.sqlite.tables import SQLiteTables
from sidecar.store.sqlite.writer import carry_out
from sidecar.store.stored import SECRET_BYTES, SessionRef
from sidecar.store.submitting import Submitting, mark_withdrawn, refuse
from sidecar.store.writes import Write

if TYPE_CHECKING:
    from sidecar.store.search.rank import Contents
    from sidecar.store.search.scope import SearchReads
    from sidecar.store.sqlite.fts5 import Indexer, Prepared, Preparer

_T = TypeVar("_T")

_PAUSE_S = 0.05
"""So long nothing is written before indexing begins."""
_PORTION = 64
"""Messages that are indexed in one go."""
_SLICE_S = 0.01
"""So long a search goes on before others have their turn."""
_TRIES = 3


class MemoryStore(ReadsOnLoop, Submitting):
    """Sessions in a SQLite database without a file, on the loop's own thread."""

    kind = "memory"

    def __init__(self, extract: Extract | None = None, *, parts: bool = True) -> None:
        super().__init__()
        self.secrets = [os.urandom(SECRET_BYTES)]
        self._extract = extract or plain_text
        self._parts = parts
        self._connection: Connection | None = None
        self._queue: deque[Write] = deque()
        self._indexer: Indexer | None = None
        self._preparer: Preparer | None = None
        self._contents: Contents | None = None
        self._pause: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """See `SessionStore`."""
        self._loop = asyncio.get_running_loop()
        connection = self._connection = cast("Connection", apsw.Connection(":memory:"))
        create(connection)
        self._tables = SQLiteTables(connection)
        self._lookups = SQLiteLookups(connection)

    async def close(self) -> None:
        """See `SessionStore`."""
        if self._connection is None:
            return
        if self._erasing is not None:
            self._erasing.cancel()
        self._carry_out()
        if self._pause is not None:
            self._pause.cancel()
        connection, self._connection = self._connection, None
        self._indexer = self._preparer = None
        connection.close()

    def submit(self, write: Write, done: Callable[[Any], None]) -> None:
        """See `SessionStore`."""
        write.done = done
        if self._connection is None:
            refuse(write)
            return
        if not self._queue:
            self._loop.call_soon(self._carry_out)
        self._queue.append(write)

    def withdraw(self, write: Write) -> bool:
        """See `SessionStore`."""
        if write.started or write.withdrawn:
            return False
        mark_withdrawn(write)
        return True

    async def search(self, ref: SessionRef, query: SearchQuery) -> SearchResult:
        """See `SessionSearch`."""
        from sidecar.store.search.answer import search_session

        return await self._searched(lambda reads, contents: search_session(reads, ref, query, contents))

    async def search_sessions(
        self, namespace: str, query: SearchQuery, *, without: Collection[SessionRef] = ()
    ) -> SessionsResult:
        """See `SessionSearch`."""
        from sidecar.store.search.answer import search_sessions

        return await self._searched(
            lambda reads, contents: search_sessions(reads, namespace, query, without, contents)
        )

    @property
    def indexing(self) -> bool:
        """Whether messages wait to be indexed."""
        return self._pause is not None

    async def _searched(self, start: "Callable[[SearchReads, Contents], Generator[None, None, _T]]") -> _T:
        """Search a little at a time; begin again where messages were moved or erased meanwhile."""
        from sidecar.store.search.rank import Contents
        from sidecar.store.sqlite.fts5 import FTS5Reads

        contents = self._contents = self._contents or Contents(self._extract)
        for attempt in range(_TRIES + 1):
            reads = FTS5Reads(self._opened())
            reads.refresh()
            steps, moved = start(reads, contents), self._tables.moved
            while True:
                until = self._loop.time() + _SLICE_S
                try:
                    while self._loop.time() < until or attempt == _TRIES:
                        next(steps)
                except StopIteration as done:
                    return done.value
                await asyncio.sleep(0)
                self._opened()
                if self._tables.moved != moved:
                    break
        raise AssertionError("the last attempt has its answer at once")

    def _carry_out(self) -> None:
        batch = [write for write in self._queue if not write.withdrawn]
        self._queue.clear()
        if self._connection is None or not batch:
            return
        for write in batch:
            write.started = True
        carry_out(self._tables, batch)
        if self._indexer is not None:
            self._indexer.note()
        if self._pause is None:
            self._pause = self._loop.call_later(_PAUSE_S, self._index)
        self.tell(batch)

    def _index(self) -> None:
        """Index some messages; a thread makes their terms, so that the loop does not wait for long ones."""
        if self._indexer is None or self._preparer is None:
            from sidecar.store.sqlite.fts5 import Indexer, Preparer

            self._indexer = Indexer(self._opened(), parts=self._parts)
            self._preparer = Preparer(self._opened(), self._extract, parts=self._parts)
        unprepared = self._preparer.read(self._indexer.start(), _PORTION)
        making = self._loop.run_in_executor(None, self._preparer.made, unprepared)
        making.add_done_callback(self._index_made)

    def _index_made(self, making: "asyncio.Future[Prepared]") -> None:
        self._pause = None
        indexer = self._indexer
        if indexer is None or making.cancelled():
            return
        if (error := making.exception()) is not None:
            indexer.failed(cast("Exception", error))
        else:
            indexer.add(making.result())
        if indexer.has_work:
            self._pause = self._loop.call_later(0, self._index)

    def _opened(self) -> Connection:
        if self._connection is None:
            raise StoreUnavailable("the store is not open")
        return self._connection

    def _view(self) -> nullcontext[SQLiteLookups]:
        self._opened()
        return nullcontext(self._lookups)
