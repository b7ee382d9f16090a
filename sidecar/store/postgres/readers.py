"""The threads that read, with a connection for each question."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

import psycopg

from sidecar.store.postgres.connection import Connection
from sidecar.store.postgres.faults import is_lost, lost, unavailable
from sidecar.store.postgres.lookups import PostgresLookups
from sidecar.store.postgres.pool import Outage, Pauses, Pool

_T = TypeVar("_T")
_Reads = TypeVar("_Reads", bound=PostgresLookups)


class Readers(Generic[_Reads]):
    """A few threads for reading; a question waits for a free connection, and for a server that is away."""

    def __init__(
        self,
        pool: Pool,
        wait_s: float,
        outage: Outage,
        *,
        threads: int,
        leaving: int,
        reads: Callable[[Connection], _Reads],
    ) -> None:
        """`leaving` is the number of connections that are left for others."""
        self._pool = pool
        self._outage = outage
        self._make = reads
        self._wait_s = wait_s
        self._leaving = leaving
        self._closed = threading.Event()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="store-reader")

    def submit(self, question: Callable[[_Reads], _T]) -> Future[_T]:
        """The answer to come."""
        return self._threads.submit(self._answer, question, time.monotonic() + self._wait_s)

    @property
    def closed(self) -> bool:
        """Whether nothing is answered any more."""
        return self._closed.is_set()

    def close(self) -> None:
        """End the threads; blocks until the last question is answered."""
        self._closed.set()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _answer(self, question: Callable[[_Reads], _T], deadline: float) -> _T:
        pauses = Pauses()
        while True:
            if self._outage.of_reads:
                raise lost()
            connection: Connection | None = None
            try:
                with self._pool.lent(deadline, leaving=self._leaving) as connection:
                    return self._asked(connection, question)
            except psycopg.Error as error:
                if not is_lost(error, connection):
                    raise unavailable(error) from error
                self._pool.drop_free()
                if time.monotonic() >= deadline:
                    self._outage.begin()
                    raise unavailable(error) from error
                if self._closed.wait(pauses.next()):
                    raise lost() from error

    def _asked(self, connection: Connection, question: Callable[[_Reads], _T]) -> _T:
        reads = self._make(connection)
        reads.begin()
        try:
            return question(reads)
        finally:
            if not connection.closed:
                reads.end()
