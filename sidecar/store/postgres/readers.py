"""The threads that read, each with a connection of its own that it makes anew when the server was away."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

import psycopg

from sidecar.store.postgres.connection import Connection, connect
from sidecar.store.postgres.faults import is_lost, lost, unavailable
from sidecar.store.postgres.lookups import PostgresLookups

_T = TypeVar("_T")
_Reads = TypeVar("_Reads", bound=PostgresLookups)

_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 0.5
_FIRST_BACKOFF_S = 0.5
_LONGEST_BACKOFF_S = 5.0


class Outage:
    """Whether the server is known to be away: requests then fail at once while a thread looks for it."""

    def __init__(self, conninfo: str) -> None:
        self.is_on = False
        self._conninfo = conninfo
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def begin(self) -> None:
        """Note that a request has waited for the server in vain."""
        with self._lock:
            if not (self.is_on or self._closed.is_set()):
                self.is_on = True
                threading.Thread(target=self._look, name="store-reconnect", daemon=True).start()

    def close(self) -> None:
        """Look for the server no longer."""
        self._closed.set()

    def _look(self) -> None:
        backoff_s = _FIRST_BACKOFF_S
        while not self._closed.wait(backoff_s):
            try:
                connect(self._conninfo).close()
            except psycopg.Error:
                backoff_s = min(backoff_s * 2, _LONGEST_BACKOFF_S)
            else:
                break
        self.is_on = False


class Readers(Generic[_Reads]):
    """A few connections for reading; a question waits for a free one, and for a server that is away."""

    def __init__(
        self,
        conninfo: str,
        wait_s: float,
        outage: Outage,
        *,
        threads: int,
        reads: Callable[[Connection], _Reads],
    ) -> None:
        self._conninfo = conninfo
        self._outage = outage
        self._make = reads
        self._wait_s = wait_s
        self._own = threading.local()
        self._all: list[_Reads] = []
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
        """Let go of the connections; blocks until the last question is answered."""
        self._closed.set()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for reads in self._all:
            reads.connection.close()

    def _answer(self, question: Callable[[_Reads], _T], deadline: float) -> _T:
        pause_s = _PAUSE_S
        while True:
            if self._outage.is_on:
                raise lost()
            try:
                return self._asked(question)
            except psycopg.Error as error:
                if not is_lost(error, self._connection()):
                    raise unavailable(error) from error
                self._disconnect()
                if time.monotonic() >= deadline:
                    self._outage.begin()
                    raise lost() from error
                if self._closed.wait(pause_s):
                    raise lost() from error
                pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)

    def _asked(self, question: Callable[[_Reads], _T]) -> _T:
        reads: _Reads | None = getattr(self._own, "reads", None)
        if reads is None:
            reads = self._own.reads = self._make(connect(self._conninfo))
            self._all.append(reads)
        elif reads.connection.closed:
            reads.use(connect(self._conninfo))
        reads.begin()
        try:
            return question(reads)
        finally:
            if not reads.connection.closed:
                reads.end()

    def _disconnect(self) -> None:
        connection = self._connection()
        if connection is not None:
            connection.close()

    def _connection(self) -> Connection | None:
        reads: _Reads | None = getattr(self._own, "reads", None)
        return None if reads is None else reads.connection
