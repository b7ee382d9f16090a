"""The thread that searches, with a connection of its own."""

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import apsw

from sidecar.store.errors import StoreUnavailable
from sidecar.store.indexing.covering import Gaps, SearchReads
from sidecar.store.indexing.running import RunningSearch
from sidecar.store.search import Extract
from sidecar.store.sqlite.connection import connect
from sidecar.store.sqlite.faults import unavailable
from sidecar.store.sqlite.index_reads import SQLiteSearchReads

_T = TypeVar("_T")

_BUSY_MS = 2_000
_CACHE_KIB = 16 * 1024


class SearchThread:
    """Searches take turns on it, a short time each."""

    def __init__(self, path: Path, vfs: str | None, extract: Extract) -> None:
        self._path = path
        self._vfs = vfs
        self._gaps = Gaps(extract)
        self._reads: SQLiteSearchReads | None = None
        self._closed = False
        self._running = 0
        self._thread = ThreadPoolExecutor(1, "store-search")

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits for a search; any thread may ask."""
        return self._running > 0

    async def run(self, start: Callable[[SearchReads, Gaps], Generator[None, None, _T]]) -> _T:
        """The result of a search."""
        loop = asyncio.get_running_loop()
        search = RunningSearch[_T](lambda reads: start(reads, self._gaps))
        self._running += 1
        try:
            while not self._closed:
                found = await loop.run_in_executor(self._thread, self._advance, search)
                if found is not None:
                    return found
        finally:
            self._running -= 1
        raise StoreUnavailable("the store is closed")

    async def close(self) -> None:
        """Let the search of the moment end its turn, then release the connection."""
        self._closed = True
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown(wait=False)

    def _advance(self, search: RunningSearch[_T]) -> _T | None:
        try:
            reads = self._reads
            if reads is None:
                connection = connect(self._path, self._vfs, busy_ms=_BUSY_MS, cache_kib=_CACHE_KIB)
                connection.execute("PRAGMA query_only = ON")
                reads = self._reads = SQLiteSearchReads(connection)
            reads.connection.execute("BEGIN")
            try:
                return search.advance(reads)
            finally:
                reads.connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise unavailable(error) from error

    def _disconnect(self) -> None:
        reads, self._reads = self._reads, None
        if reads is not None:
            reads.connection.close()
