"""The connections of one store: few, lent for a transaction each, and closed when nobody needs them."""

import random
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import psycopg

from sidecar.store.postgres.connection import Connection, Overdue, Prepare, connect
from sidecar.store.postgres.faults import is_full

SPARE_S = 5.0
"""After so long a connection that nobody uses is closed where there is another one."""
IDLE_S = 30.0
"""After so long the last one is closed too."""
_PROBE_S = 5.0
"""How long one look for the server may take."""
_FIRST_BACKOFF_S = 0.5
_LONGEST_BACKOFF_S = 5.0
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 0.5


class Pauses:
    """Pauses between attempts: they grow, and differ, so that many processes do not come at once."""

    def __init__(self, first_s: float = _FIRST_PAUSE_S, longest_s: float = _LONGEST_PAUSE_S) -> None:
        self._next_s = first_s
        self._longest_s = longest_s

    def next(self) -> float:
        """Seconds to wait before the next attempt."""
        pause_s = self._next_s
        self._next_s = min(pause_s * 1.5, self._longest_s)
        return pause_s * (0.5 + random.random())


class _Free(NamedTuple):
    connection: Connection
    since: float


class Pool:
    """At most `most` connections, of which the one that was used last is lent first.

    A connection that is given back inside of a transaction, or after a fault of its own, is closed.
    """

    def __init__(self, conninfo: str, *, most: int, prepare: Prepare) -> None:
        self._conninfo = conninfo
        self._most = most
        self._prepare: Prepare = prepare
        self._changed = threading.Condition()
        self._free: list[_Free] = []
        self._lent = 0
        self._urgent = 0
        """Writers that wait; they come first."""
        self._closed = threading.Event()
        self._closes_idle = False

    @contextmanager
    def lent(self, deadline: float, *, leaving: int = 0, urgent: bool = False) -> Generator[Connection]:
        """A connection until the end of the block, whose statements end at the deadline.

        It waits for its turn behind those that are `urgent`, and until `leaving` others would be left; where
        there are not so many altogether, one is lent all the same.

        Raises:
            psycopg.Error: there is no connection to be had before the deadline.
        """
        connection = self._take(deadline, max(1, self._most - leaving), urgent=urgent)
        try:
            connection.deadline = deadline
            yield connection
        finally:
            self._give_back(connection)

    def drop_free(self) -> None:
        """Close what is not lent, because the server has gone."""
        with self._changed:
            free, self._free = self._free, []
        for each in free:
            each.connection.close()

    def close(self) -> None:
        """Close what is not lent now, and the rest as it is given back."""
        self._closed.set()
        self.drop_free()

    @property
    def size(self) -> int:
        """Connections that are open now."""
        with self._changed:
            return len(self._free) + self._lent

    def _take(self, deadline: float, most: int, *, urgent: bool) -> Connection:
        pauses = Pauses()
        while True:
            with self._changed:
                self._urgent += urgent
                try:
                    while self._lent >= most or (self._urgent and not urgent):
                        if not self._changed.wait(max(deadline - time.monotonic(), 0)):
                            raise Overdue("all connections were in use until the deadline")
                finally:
                    self._urgent -= urgent
                self._lent += 1
                if urgent:
                    self._changed.notify_all()
                found = self._free.pop().connection if self._free else None
            if found is not None:
                return found
            try:
                return connect(self._conninfo, deadline=deadline, prepare=self._prepare)
            except BaseException as error:
                with self._changed:
                    self._lent -= 1
                    self._changed.notify_all()
                pause_s = pauses.next()
                if not is_full(error) or time.monotonic() + pause_s >= deadline:
                    raise
                # One of ours may become free before the server has room for another.
                with self._changed:
                    self._changed.wait_for(lambda: bool(self._free), pause_s)

    def _give_back(self, connection: Connection) -> None:
        keeps = not connection.closed and connection.idle
        with self._changed:
            self._lent -= 1
            keeps = keeps and not self._closed.is_set()
            if keeps:
                self._free.append(_Free(connection, time.monotonic()))
                if not self._closes_idle:
                    self._closes_idle = True
                    threading.Thread(target=self._close_idle, name="store-idle", daemon=True).start()
            self._changed.notify_all()
        if not keeps:
            connection.close()

    def _close_idle(self) -> None:
        """Close connections as they have been free for long enough; ends with the last one."""
        while True:
            with self._changed:
                if not self._free:
                    self._closes_idle = False
                    return
                kept_s = SPARE_S if len(self._free) > 1 else IDLE_S
                left_s = self._free[0].since + kept_s - time.monotonic()
                gone = self._free.pop(0) if left_s <= 0 else None
            if gone is None:
                self._closed.wait(left_s)
            else:
                gone.connection.close()


class Outage:
    """Whether the server is known to be away: requests then fail at once while a thread looks for it.

    A server that answers may still keep commits waiting for a standby. Reads go on then.
    """

    def __init__(self, conninfo: str) -> None:
        self.of_reads = False
        self.of_writes = False
        self.probe: Callable[[Connection], None] | None = None
        """Commits something; raises where that takes too long."""
        self._conninfo = conninfo
        self._lock = threading.Lock()
        self._looks = False
        self._closed = threading.Event()

    def begin(self, *, writes: bool = False) -> None:
        """Note that a read, or a write, has waited for the server in vain."""
        with self._lock:
            if self._closed.is_set():
                return
            self.of_writes = self.of_writes or writes
            self.of_reads = self.of_reads or not writes
            if not self._looks:
                self._looks = True
                threading.Thread(target=self._look, name="store-reconnect", daemon=True).start()

    def close(self) -> None:
        """Look for the server no longer."""
        self._closed.set()

    def _look(self) -> None:
        pauses = Pauses(_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S)
        while not self._closed.wait(pauses.next()):
            with suppress(psycopg.Error):
                connection = connect(self._conninfo, deadline=time.monotonic() + _PROBE_S)
                try:
                    self.of_reads = False
                    if self.of_writes and self.probe is not None:
                        self.probe(connection)
                finally:
                    connection.close()
                with self._lock:
                    self.of_writes = False
                    self._looks = self.of_reads
                    if not self._looks:
                        return
        self.of_reads = self.of_writes = False
