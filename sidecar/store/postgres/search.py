"""Searches in PostgreSQL, which take turns on a thread of their own."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

import psycopg

from sidecar.store.indexing.covering import Gaps, SearchReads
from sidecar.store.indexing.running import RunningSearch
from sidecar.store.postgres.index_reads import PostgresSearchReads
from sidecar.store.postgres.readers import Readers
from sidecar.store.search import Extract

_T = TypeVar("_T")

Ask = Callable[[Readers[PostgresSearchReads], Callable[[PostgresSearchReads], Any]], Awaitable[Any]]


class Searches:
    """Searches over one connection; what they gather of a session is kept for the next."""

    def __init__(self, conninfo: str, wait_s: float, extract: Extract) -> None:
        self._readers = Readers(conninfo, wait_s, threads=1, reads=PostgresSearchReads)
        self._gaps = Gaps(extract)

    async def run(self, start: Callable[[SearchReads, Gaps], Generator[None, None, _T]], ask: Ask) -> _T:
        """The result of a search."""
        search = RunningSearch[_T](lambda reads: start(reads, self._gaps))

        def advance(reads: PostgresSearchReads) -> _T | None:
            try:
                return search.advance(reads)
            except psycopg.Error:
                search.restart()
                raise

        while True:
            found = await ask(self._readers, advance)
            if found is not None:
                return found

    def close(self) -> None:
        """Let go of the connection; blocks until the turn of the moment is over."""
        self._readers.close()
