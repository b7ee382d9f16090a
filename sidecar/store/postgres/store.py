"""The `SessionStore` in PostgreSQL."""

import asyncio
import os
import time
from asyncio import CancelledError
from collections.abc import Callable, Collection, Generator, Hashable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from sidecar.store.errors import StoreUnavailable
from sidecar.store.postgres.connection import Connection, Prepare, begin_writing, checked_conninfo
from sidecar.store.postgres.faults import unavailable
from sidecar.store.postgres.lookups import PostgresLookups
from sidecar.store.postgres.pool import Outage, Pool
from sidecar.store.postgres.readers import Readers
from sidecar.store.postgres.writer import Writer
from sidecar.store.reads import Lookups, SessionReads
from sidecar.store.search import Extract, SearchQuery, SearchResult, SessionsResult, plain_text
from sidecar.store.stored import SessionRef
from sidecar.store.submitting import Submitting, refuse
from sidecar.store.writes import Write

if TYPE_CHECKING:
    from sidecar.store.postgres.gin import GINReads
    from sidecar.store.search.answer import Turns
    from sidecar.store.search.rank import Contents
    from sidecar.store.search.scope import SearchReads

_T = TypeVar("_T")
_Reads = TypeVar("_Reads", bound=PostgresLookups)

_ELECT = (
    "INSERT INTO leases (task, holder, until) "
    "VALUES (%s, %s, clock_timestamp() + %s * interval '1 millisecond') "
    "ON CONFLICT (task) DO UPDATE SET holder = excluded.holder, until = excluded.until "
    "WHERE leases.holder = excluded.holder OR leases.until <= clock_timestamp() RETURNING 1"
)
_WAIT_S = 10.0
"""How long a request waits for a server that is away."""


class PostgresStore(SessionReads, Submitting):
    """Sessions on a server that many processes share: one thread writes, a few read, the loop waits.

    A batch whose commit was cut off is looked up after the connection is back, so that it takes effect once.
    """

    kind = "postgres"

    def __init__(
        self,
        url: str,
        *,
        wait_s: float = _WAIT_S,
        extract: Extract | None = None,
        url_by_host: bool = False,
        parts: bool = False,
        connections: int = 3,
        prepare: Prepare = "auto",
    ) -> None:
        """`parts` says whether parts of words are indexed, where the index is still to be made.

        `connections` is the most that are open at the same time.
        """
        super().__init__()
        self._parts = parts
        self.secrets: list[bytes] = []
        self._url = url
        self._url_by_host = url_by_host
        self._wait_s = wait_s
        self._most = connections
        self._prepare: Prepare = prepare
        self._extract = extract or plain_text
        self._searchers: dict[bool, Readers[GINReads]] = {}
        """Those for answers, which wait for no others, and the others."""
        self._turns: Turns | None = None
        self._writer: Writer | None = None
        self._readers: Readers[PostgresLookups] | None = None
        self._closed: asyncio.Event | None = None
        self._name = os.urandom(12).hex()
        self._outage: Outage | None = None
        self._pool: Pool | None = None

    async def open(self) -> None:
        """See `SessionStore`.

        Raises:
            StoreUnavailable: it cannot be opened.
        """
        loop = self._loop = asyncio.get_running_loop()
        opened: asyncio.Future[StoreUnavailable | None] = loop.create_future()
        closed = asyncio.Event()
        conninfo = checked_conninfo(self._url, by_host=self._url_by_host)
        pool = Pool(conninfo, most=self._most, prepare=self._prepare)
        outage = self._outage = Outage(conninfo)
        writer = Writer(
            self._name,
            pool,
            outage,
            self._wait_s,
            opened=lambda error: self._call(_settle, opened, error),
            completed=lambda writes: self._call(self.tell, writes),
            closed=lambda: self._call(closed.set),
            extract=self._extract,
            parts=self._parts,
        )
        writer.start()
        error = await opened
        if error is not None:
            pool.close()
            raise error
        self._writer, self._closed, self._pool = writer, closed, pool
        self.secrets = writer.secrets
        self._readers = self._reading(pool, outage, PostgresLookups)
        self.erase_rest()

    async def close(self) -> None:
        """See `SessionStore`."""
        await self.erased()
        writer, self._writer = self._writer, None
        readers, self._readers = self._readers, None
        searchers, self._searchers = self._searchers, {}
        if self._turns is not None:
            self._turns.end()
        if self._outage is not None:
            self._outage.close()
        if writer is not None:
            writer.end()
        if self._closed is not None:
            await self._closed.wait()
        for opened in (readers, *searchers.values()):
            if opened is not None:
                await asyncio.to_thread(opened.close)
        if self._pool is not None:
            self._pool.close()

    def submit(self, write: Write, done: Callable[[Any], None]) -> None:
        """See `SessionStore`."""
        write.done = done
        if self._writer is None:
            refuse(write)
        else:
            self._writer.put(write)

    def withdraw(self, write: Write) -> bool:
        """See `SessionStore`."""
        return self._writer is not None and self._writer.withdraw(write)

    async def read(self, question: Callable[[Lookups], _T]) -> _T:
        """See `SessionReads`.

        Raises:
            StoreUnavailable: the store is not open, or the server did not come back in time.
        """
        if self._readers is None:
            raise StoreUnavailable("the store is not open")
        return await _asked(self._readers, question)

    async def elected(self, task: str, for_s: float) -> bool:
        """See `SessionStore`; by the server's clock."""
        if self._pool is None:
            raise StoreUnavailable("the store is not open")
        return await asyncio.to_thread(self._elect, self._pool, task, for_s)

    def _elect(self, pool: Pool, task: str, for_s: float) -> bool:
        try:
            with pool.lent(time.monotonic() + self._wait_s) as connection:
                cursor = connection.cursor(binary=True)
                begin_writing(cursor)
                found = cursor.execute(_ELECT, (task, self._name, int(for_s * 1000))).fetchall()
                cursor.execute("COMMIT")
        except psycopg.Error as error:
            raise unavailable(error) from error
        return bool(found)

    async def search(self, ref: SessionRef, query: SearchQuery) -> SearchResult:
        """See `SessionSearch`."""
        from sidecar.store.search.answer import search_session

        return await self._searched(
            ref, query, lambda reads, contents: search_session(reads, ref, query, contents)
        )

    async def search_sessions(
        self, namespace: str, query: SearchQuery, *, without: Collection[SessionRef] = ()
    ) -> SessionsResult:
        """See `SessionSearch`."""
        from sidecar.store.search.answer import search_sessions

        return await self._searched(
            (namespace, query.agent_id),
            query,
            lambda reads, contents: search_sessions(reads, namespace, query, without, contents),
        )

    @property
    def indexing(self) -> bool:
        """Whether messages wait to be indexed, or are being indexed now."""
        return self._writer is not None and self._writer.indexing

    async def _searched(
        self,
        of: Hashable,
        query: SearchQuery,
        start: "Callable[[SearchReads, Contents], Generator[None, None, _T]]",
    ) -> _T:
        if self._pool is None or self._outage is None:
            raise StoreUnavailable("the store is not open")
        if self._turns is None:
            from sidecar.store.search.answer import Turns

            self._turns = Turns(self._extract)
        searchers = self._searchers.get(query.for_answer)
        if searchers is None:
            from sidecar.store.postgres.gin import GINReads

            # The model's searches may take long, so they leave a connection to everything else.
            leaving = 0 if query.for_answer else 1
            searchers = self._searchers[query.for_answer] = self._reading(
                self._pool, self._outage, GINReads, leaving=leaving
            )
        contents = self._turns.contents
        async with self._turns.of(of, for_answer=query.for_answer) as turn:
            return await _asked(searchers, lambda reads: turn.carry_out(start(reads, contents)))

    def _reading(
        self, pool: Pool, outage: Outage, reads: Callable[[Connection], _Reads], *, leaving: int = 0
    ) -> Readers[_Reads]:
        threads = max(1, self._most - leaving)
        return Readers(pool, self._wait_s, outage, threads=threads, leaving=leaving, reads=reads)

    def _call(self, callback: Callable[..., object], *values: object) -> None:
        """Call on the loop; nothing is left to tell once the loop is closed."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *values)


def _settle(opened: asyncio.Future[StoreUnavailable | None], error: StoreUnavailable | None) -> None:
    if not opened.done():
        opened.set_result(error)


async def _asked(readers: Readers[_Reads], question: Callable[[_Reads], _T]) -> _T:
    """The answer of a reading thread."""
    try:
        return await asyncio.wrap_future(readers.submit(question))
    except (RuntimeError, CancelledError) as error:
        if readers.closed:
            raise StoreUnavailable("the store is closed") from error
        raise
