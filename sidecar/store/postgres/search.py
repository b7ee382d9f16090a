"""Searches in PostgreSQL, which take turns on a thread of their own."""

from collections.abc import Awaitable, Callable

import psycopg

from sidecar.store.contract import SessionRef
from sidecar.store.indexing.covering import Gaps
from sidecar.store.indexing.running import RunningSearch
from sidecar.store.postgres.lookups import PostgresLookups
from sidecar.store.postgres.readers import Readers
from sidecar.store.search import Extract, SearchQuery, SearchResult

Ask = Callable[[Readers, Callable[[PostgresLookups], SearchResult | None]], Awaitable[SearchResult | None]]


class Searches:
    """Searches over one connection; what they gather of a session is kept for the next."""

    def __init__(self, conninfo: str, wait_s: float, extract: Extract) -> None:
        self._readers = Readers(conninfo, wait_s, threads=1)
        self._gaps = Gaps(extract)

    async def search(self, ref: SessionRef, query: SearchQuery, ask: Ask) -> SearchResult:
        """See `SessionSearch`."""
        search = RunningSearch(self._gaps, ref, query)

        def advance(reads: PostgresLookups) -> SearchResult | None:
            nonlocal search
            try:
                return search.advance(reads)
            except psycopg.Error:
                search = RunningSearch(self._gaps, ref, query)
                raise

        while True:
            found = await ask(self._readers, advance)
            if found is not None:
                return found

    def close(self) -> None:
        """Let go of the connection; blocks until the turn of the moment is over."""
        self._readers.close()
