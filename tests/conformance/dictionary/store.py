"""The `SessionStore` that keeps everything in memory, and nothing longer than the process."""

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Generator
from contextlib import nullcontext
from typing import Any, TypeVar

from sidecar.store.errors import StoreUnavailable
from sidecar.store.reads import ReadsOnLoop
from sidecar.store.rules import apply
from sidecar.store.search import Extract, SearchQuery, SearchResult, SessionsResult, plain_text
from sidecar.store.search.answer import search_session, search_sessions
from sidecar.store.search.rank import Contents
from sidecar.store.stored import SECRET_BYTES, SessionRef
from sidecar.store.submitting import Submitting, mark_withdrawn, refuse
from sidecar.store.writes import Write
from tests.conformance.dictionary.tables import MemoryTables

_T = TypeVar("_T")


class MemoryStore(ReadsOnLoop, Submitting):
    """Sessions in dictionaries, under the same rules as in a file."""

    kind = "memory"

    def __init__(self, extract: Extract | None = None) -> None:
        super().__init__()
        self.secrets = [os.urandom(SECRET_BYTES)]
        self._tables: MemoryTables | None = None
        self._queue: deque[Write] = deque()
        self._extract = extract or plain_text

    async def open(self) -> None:
        """See `SessionStore`."""
        self._loop = asyncio.get_running_loop()
        self._tables = MemoryTables()

    async def close(self) -> None:
        """See `SessionStore`."""
        if self._tables is not None:
            self._carry_out()
            self._tables = None

    def submit(self, write: Write, done: Callable[[Any], None]) -> None:
        """See `SessionStore`."""
        write.done = done
        if self._tables is None:
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
        with self._view() as reads:
            return _answer(search_session(reads, ref, query, Contents(self._extract)))

    async def search_sessions(
        self, namespace: str, query: SearchQuery, *, without: Collection[SessionRef] = ()
    ) -> SessionsResult:
        """See `SessionSearch`."""
        with self._view() as reads:
            return _answer(search_sessions(reads, namespace, query, without, Contents(self._extract)))

    def _carry_out(self) -> None:
        tables = self._tables
        batch = [write for write in self._queue if not write.withdrawn]
        self._queue.clear()
        if tables is None:
            return
        tables.now_ms = time.time_ns() // 1_000_000
        for write in batch:
            write.started = True
            try:
                apply(tables, write)
            except Exception as error:
                write.error = StoreUnavailable(f"the store failed: {type(error).__name__}")
        self.tell(batch)

    def _view(self) -> nullcontext[MemoryTables]:
        if self._tables is None:
            raise StoreUnavailable("the store is not open")
        return nullcontext(self._tables)


def _answer(steps: Generator[None, None, _T]) -> _T:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value
