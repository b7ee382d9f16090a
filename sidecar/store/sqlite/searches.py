"""The threads that search, each with a connection of its own."""

import asyncio
import threading
from collections.abc import Callable, Generator, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import apsw

from sidecar.store.errors import StoreUnavailable
from sidecar.store.search import Extract, SearchQuery
from sidecar.store.search.answer import Turn, Turns
from sidecar.store.search.rank import Contents
from sidecar.store.search.scope import SearchReads
from sidecar.store.sqlite.connection import connect
from sidecar.store.sqlite.faults import unavailable
from sidecar.store.sqlite.fts5 import FTS5Reads
from sidecar.store.sqlite.schema import refuse_newer

_T = TypeVar("_T")

_THREADS = 2
"""For searches, and so many again for those of answers: two searches in their two seconds keep no answer."""
_BUSY_MS = 2_000
_CACHE_KIB = 16 * 1024


class Searches:
    """A few of them at once."""

    def __init__(self, path: Path, vfs: str | None, extract: Extract) -> None:
        self._path = path
        self._vfs = vfs
        self._own = threading.local()
        self._all: list[FTS5Reads] = []
        self._turns = Turns(extract)
        self._threads = ThreadPoolExecutor(_THREADS, "store-search")
        self._for_answers = ThreadPoolExecutor(_THREADS, "store-search-answers")

    @property
    def contents(self) -> Contents:
        """What is kept of the messages for the next search."""
        return self._turns.contents

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits for a search; any thread may ask."""
        return self._turns.running > 0

    async def run(
        self, of: Hashable, query: SearchQuery, start: Callable[[SearchReads], Generator[None, None, _T]]
    ) -> _T:
        """The result of a search for a query; `of` is what is searched.

        Raises:
            SearchError: the query cannot be answered.
            StoreUnavailable: the store is closed, or cannot be read.
        """
        async with self._turns.of(of, for_answer=query.for_answer) as turn:
            if self._turns.ended:
                raise StoreUnavailable("the store is closed")
            loop = asyncio.get_running_loop()
            threads = self._for_answers if query.for_answer else self._threads
            return await loop.run_in_executor(threads, self._carry_out, start, turn)

    async def close(self) -> None:
        """Give up the searches of the moment, then release the connections."""
        self._turns.end()
        for threads in (self._threads, self._for_answers):
            await asyncio.get_running_loop().run_in_executor(None, threads.shutdown)
        for reads in self._all:
            reads.connection.close()

    def _carry_out(self, start: Callable[[SearchReads], Generator[None, None, _T]], turn: Turn) -> _T:
        try:
            reads = self._reads()
            reads.connection.execute("BEGIN")
            try:
                refuse_newer(reads.connection)
                reads.refresh()
                return turn.carry_out(start(reads))
            finally:
                reads.connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise unavailable(error) from error

    def _reads(self) -> FTS5Reads:
        reads: FTS5Reads | None = getattr(self._own, "reads", None)
        if reads is None:
            connection = connect(self._path, self._vfs, busy_ms=_BUSY_MS, cache_kib=_CACHE_KIB)
            connection.execute("PRAGMA query_only = ON")
            reads = self._own.reads = FTS5Reads(connection)
            self._all.append(reads)
        return reads
