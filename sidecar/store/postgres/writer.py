"""The thread that carries out writes, as many in one commit as have queued up, whatever the server does."""

import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from sidecar.store.errors import StoreUnavailable
from sidecar.store.postgres.connection import connect
from sidecar.store.postgres.faults import is_conflict, is_lost, lost, spoils_the_batch, unavailable
from sidecar.store.postgres.readers import Outage
from sidecar.store.postgres.schema import prepare
from sidecar.store.postgres.tables import PostgresTables
from sidecar.store.rules import apply
from sidecar.store.search import Extract
from sidecar.store.submitting import FaultLog, mark_withdrawn
from sidecar.store.writes import Write

if TYPE_CHECKING:
    from sidecar.store.postgres.gin import Indexer

_BATCH = 512
"""Writes in one commit at most, so that the first does not wait long for the last."""
_CLOSING_S = 1.5
"""How long writes wait for a lost server once the store is being closed."""
_INDEX_FROM_S = 0.05
"""So long nothing is written before indexing begins."""
_PORTION = 100
"""Messages whose terms are filled in in one step: a write may wait for it."""
_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 0.5
_TRIES = 20
"""Times that a batch is tried while other processes are in the way."""
_SECRETS = "SELECT secret FROM secrets ORDER BY number DESC"
_FORGET_WRITERS = "DELETE FROM writers WHERE id = %s OR seen < now() - interval '7 days'"

_faults = FaultLog()


class _Queued(NamedTuple):
    write: Write
    deadline: float


class Writer:
    """One thread with one connection, which it makes anew when the server was away.

    `opened`, `completed` and `closed` are called on the writer's thread, `completed` once a batch, after the
    commit, with the writes in the order of `put`.
    """

    def __init__(
        self,
        conninfo: str,
        wait_s: float,
        outage: Outage,
        *,
        opened: Callable[[StoreUnavailable | None], None],
        completed: Callable[[list[Write]], None],
        closed: Callable[[], None],
        extract: Extract,
        parts: bool,
    ) -> None:
        self._conninfo = conninfo
        self._wait_s = wait_s
        self._outage = outage
        self._opened = opened
        self._completed = completed
        self._closed = closed
        self._extract = extract
        self._parts = parts
        self._indexer: Indexer | None = None
        self._id = os.urandom(12).hex()
        self._number = 0
        self._queue: deque[_Queued] = deque()
        self._changed = threading.Condition()
        self._ending: float | None = None
        self._tables: PostgresTables | None = None
        self.secrets: list[bytes] = []
        """Known once it is opened."""
        self._pause_s = _PAUSE_S
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)

    def start(self) -> None:
        """Connect and begin."""
        self._thread.start()

    def put(self, write: Write) -> None:
        """Queue a write; while the server is known to be away it fails at once."""
        if self._outage.is_on:
            write.started = True
            _fail([write], lost(), reported=True)
            self._completed([write])
            return
        with self._changed:
            self._queue.append(_Queued(write, time.monotonic() + self._wait_s))
            self._changed.notify()

    def end(self) -> None:
        """End the thread when everything that is queued is done."""
        with self._changed:
            self._ending = time.monotonic() + _CLOSING_S
            self._changed.notify()

    @property
    def indexing(self) -> bool:
        """Whether there is something to index, as far as known."""
        return self._indexer is None or self._indexer.has_work

    def withdraw(self, write: Write) -> bool:
        """Take a queued write back, unless it has begun."""
        with self._changed:
            if write.started or write.withdrawn:
                return False
            mark_withdrawn(write)
            return True

    def _run(self) -> None:
        try:
            connection = connect(self._conninfo)
            try:
                prepare(connection)
                self._tables = PostgresTables(connection)
                self._tables.cursor.execute(_FORGET_WRITERS, (self._id,))
                self.secrets = [secret for (secret,) in self._tables.cursor.execute(_SECRETS).fetchall()]
            except BaseException:
                connection.close()
                raise
        except Exception as error:
            _faults.report(error)
            self._opened(unavailable(error))
            return
        self._opened(None)
        try:
            while self._serve():
                pass
        except Exception as error:
            self._refuse_all(error)
        finally:
            self._close()
            self._closed()

    def _serve(self) -> bool:
        """Carry out what has queued up; false at the end."""
        with self._changed:
            while not self._queue and self._ending is None and not self.indexing:
                self._changed.wait()
            if not self._queue and self._ending is None:
                self._changed.wait(_INDEX_FROM_S)
            if not self._queue and self._ending is not None:
                return False
        if not self._queue:
            self._index_in_pause()
            return True
        if self._tables is None and not self._reconnect():
            self._give_up_waiting()
            return True
        batch = self._next_batch()
        if batch:
            self._carry_out([queued.write for queued in batch], batch[-1].deadline)
            if self._indexer is not None:
                self._indexer.note()
            self._completed([queued.write for queued in batch])
        return True

    def _index_in_pause(self) -> None:
        """Fill in what messages are found by; after a fault the next write goes on."""
        if self._indexer is None:
            from sidecar.store.postgres.gin import Indexer

            self._indexer = Indexer(self._extract, parts=self._parts)
        try:
            while self._tables is not None and self._indexer.has_work and not self._queue:
                self._tables.forget()
                self._indexer.index(self._tables.connection, _PORTION)
                if self._ending is not None:
                    break
        except Exception as error:
            _faults.report(error)
            self._indexer.has_work = False

    def _refuse_all(self, error: Exception) -> None:
        """Answer every write with the failure, so that nobody waits for a writer that is no more."""
        while self._ending is None or self._queue:
            with self._changed:
                while not self._queue and self._ending is None:
                    self._changed.wait()
            batch = [queued.write for queued in self._next_batch()]
            _fail(batch, error)
            self._completed(batch)

    def _next_batch(self) -> list[_Queued]:
        batch: list[_Queued] = []
        with self._changed:
            while self._queue and len(batch) < _BATCH:
                queued = self._queue.popleft()
                if not queued.write.withdrawn:
                    queued.write.started = True
                    batch.append(queued)
        return batch

    def _give_up_waiting(self) -> None:
        """Fail what has waited for the server as long as it may."""
        late: list[Write] = []
        with self._changed:
            while self._queue and self._is_past(self._queue[0].deadline):
                write = self._queue.popleft().write
                if not write.withdrawn:
                    write.started = True
                    late.append(write)
        if late:
            self._outage.begin()
            _fail(late, lost())
            self._completed(late)

    def _is_past(self, deadline: float) -> bool:
        ending = self._ending
        if self._outage.is_on:
            return True
        return time.monotonic() >= (deadline if ending is None else min(ending, deadline))

    def _carry_out(self, batch: list[Write], deadline: float) -> None:
        """Try the batch as one step; where that fails, give every write a step of its own."""
        error = self._tried(batch, deadline)
        if error is None:
            return
        if len(batch) > 1 and not spoils_the_batch(error):
            for write in batch:
                alone = self._tried([write], deadline)
                if alone is not None:
                    _fail([write], alone)
        else:
            _fail(batch, error)

    def _tried(self, batch: list[Write], deadline: float) -> Exception | None:
        """Try until it is committed, or fails for a reason that stays."""
        tries = 0
        while True:
            tables = self._tables
            if tables is None:
                committed = self._committed_before(deadline)
                if committed is None:
                    self._outage.begin()
                    return lost()
                if committed:
                    return None
                continue
            if tries and self._is_past(deadline):
                self._outage.begin()
                return lost()
            error = self._attempt(tables, batch)
            if error is None:
                return None
            if is_lost(error, tables.connection):
                _faults.report(error)
                tables.connection.close()
                self._tables = None
                tries += 1
            elif is_conflict(error) and tries < _TRIES:
                tries += 1
                time.sleep(random.random() * 0.01 * tries)
            else:
                return error

    def _attempt(self, tables: PostgresTables, batch: list[Write]) -> Exception | None:
        self._number += 1
        try:
            tables.begin(batch, self._id, self._number, time.time_ns() // 1_000_000)
            for write in batch:
                apply(tables, write)
            tables.commit()
        except Exception as error:
            try:
                tables.undo()
            except psycopg.Error:
                tables.connection.close()
            return error
        return None

    def _committed_before(self, deadline: float) -> bool | None:
        """Whether the last attempt was committed before the connection was lost; `None` if nobody tells.

        The row is locked for as long as the server still works on that attempt.
        """
        while not self._reconnect():
            if self._is_past(deadline):
                return None
        assert self._tables is not None
        try:
            number = self._tables.value("SELECT batch FROM writers WHERE id = %s FOR UPDATE", (self._id,))
        except psycopg.Error as error:
            _faults.report(error)
            self._tables.connection.close()
            self._tables = None
            return None if self._is_past(deadline) else self._committed_before(deadline)
        return number == self._number

    def _reconnect(self) -> bool:
        """Try to connect once, and pause where that fails."""
        try:
            self._tables = PostgresTables(connect(self._conninfo))
        except psycopg.Error:
            self._pause_s = min(self._pause_s * 1.5, _LONGEST_PAUSE_S)
            time.sleep(self._pause_s)
            return False
        self._pause_s = _PAUSE_S
        return True

    def _close(self) -> None:
        _faults.close()
        if self._tables is None:
            return
        try:
            self._tables.cursor.execute(_FORGET_WRITERS, (self._id,))
        except psycopg.Error as error:
            _faults.report(error)
        self._tables.connection.close()


def _fail(writes: list[Write], error: Exception, *, reported: bool = False) -> None:
    if not reported:
        _faults.report(error)
    for write in writes:
        write.result = None
        write.error = unavailable(error)
