"""The `SessionStore` that keeps everything in memory, and nothing longer than the process."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Generator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from sidecar.store.applying import apply
from sidecar.store.errors import StoreUnavailable
from sidecar.store.memory.tables import MemoryTables
from sidecar.store.reads_on_loop import ReadsOnLoop
from sidecar.store.search import Extract, SearchQuery, SearchResult, SessionsResult, plain_text
from sidecar.store.stored import SessionRef
from sidecar.store.submitting import Submitting, mark_withdrawn, refuse
from sidecar.store.writes import Delete, Write

if TYPE_CHECKING:
    from sidecar.store.indexing.covering import Gaps, SearchReads

_T = TypeVar("_T")


class MemoryStore(Submitting, ReadsOnLoop):
    """Sessions in dictionaries, under the same rules as in a file."""

    kind = "memory"

    def __init__(self, extract: Extract | None = None) -> None:
        super().__init__()
        self._tables: MemoryTables | None = None
        self._queue: deque[Write] = deque()
        self._extract = extract or plain_text
        self._gaps: Gaps | None = None

    async def open(self) -> None:
        """See `SessionStore`."""
        self._loop = asyncio.get_running_loop()
        self._tables = MemoryTables()

    async def close(self) -> None:
        """See `SessionStore`."""
        if self._tables is not None:
            self._carry_out()
            self._tables = self._gaps = None

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
        from sidecar.store.indexing.searching import search_steps

        return await self._run(lambda reads, gaps: search_steps(reads, gaps, ref, query))

    async def search_sessions(
        self, namespace: str, query: SearchQuery, *, without: Collection[SessionRef] = ()
    ) -> SessionsResult:
        """See `SessionSearch`."""
        from sidecar.store.indexing.across import sessions_steps

        return await self._run(lambda reads, gaps: sessions_steps(reads, gaps, namespace, query, without))

    async def _run(self, start: "Callable[[SearchReads, Gaps], Generator[None, None, _T]]") -> _T:
        from sidecar.store.indexing.covering import Gaps
        from sidecar.store.indexing.running import RunningSearch

        gaps = self._gaps = self._gaps or Gaps(self._extract)
        search = RunningSearch[_T](lambda reads: start(reads, gaps))
        while True:
            with self._view() as reads:
                found = search.advance(reads)
            if found is not None:
                return found
            await asyncio.sleep(0)

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
        if self._gaps is not None and any(isinstance(write, Delete) for write in batch):
            self._gaps.forget_gone(tables.has_session)
        self.tell(batch)

    def _view(self) -> nullcontext[MemoryTables]:
        if self._tables is None:
            raise StoreUnavailable("the store is not open")
        return nullcontext(self._tables)
