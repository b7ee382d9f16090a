"""The thread that carries out writes, as many in one commit as have queued up, whatever the server does."""

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from sidecar.store.errors import StoreUnavailable
from sidecar.store.postgres.connection import LOCK_MS, Connection, begin_writing
from sidecar.store.postgres.faults import (
    is_blocked,
    is_conflict,
    is_lost,
    lost,
    spoils_the_batch,
    unavailable,
)
from sidecar.store.postgres.locking import Unlocked
from sidecar.store.postgres.pool import Outage, Pauses, Pool
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
_INDEX_S = 3.0
"""How long such a step may take where the server does not answer: writes wait for it."""
_TRIES = 20
"""Times that a batch is tried while other processes are in the way."""
_HALF_LOCK_MS = 100
"""Milliseconds that part of a batch waits for a lock, once the whole has waited in vain."""
_SECRETS = "SELECT secret FROM secrets ORDER BY number DESC"
_FORGET_OLD = "DELETE FROM writers WHERE seen < now() - interval '7 days'"
_FORGETS_PERCENT = 5
"""How many of a hundred processes look for what others have left, since that reads the whole table."""
_FORGET_WRITER = "DELETE FROM writers WHERE id = %s"
_RESIGN = "DELETE FROM leases WHERE holder = %s"
_NOTED = "SELECT batch FROM writers WHERE id = %s FOR UPDATE"
"""Waits for as long as the server still works on the attempt that has noted its number there."""
_PROBE = "UPDATE writers SET seen = now() WHERE id = %s"
_PROBE_LOCK = "SET LOCAL lock_timeout = '1s'"

_faults = FaultLog()


class LostWrites(StoreUnavailable):
    """The server has not kept what it had acknowledged, as after a failover to a standby that was behind."""

    def __init__(self) -> None:
        super().__init__("the PostgreSQL server has lost commits that it had acknowledged")


class _Queued(NamedTuple):
    write: Write
    deadline: float


class Writer:
    """One thread, which borrows a connection for every batch.

    `opened`, `completed` and `closed` are called on the writer's thread, `completed` once a batch, after the
    commit, with the writes in the order of `put`.
    """

    def __init__(
        self,
        name: str,
        pool: Pool,
        outage: Outage,
        wait_s: float,
        *,
        opened: Callable[[StoreUnavailable | None], None],
        completed: Callable[[list[Write]], None],
        closed: Callable[[], None],
        extract: Extract,
        parts: bool,
    ) -> None:
        self._pool = pool
        self._wait_s = wait_s
        self._outage = outage
        outage.probe = self._probe
        self._opened = opened
        self._completed = completed
        self._closed = closed
        self._extract = extract
        self._parts = parts
        self._indexer: Indexer | None = None
        self._id = name
        self._number = 0
        self._acknowledged = 0
        """The number of the last batch that was known to be committed."""
        self._queue: deque[_Queued] = deque()
        self._changed = threading.Condition()
        self._ending: float | None = None
        self._tables: PostgresTables | None = None
        self.secrets: list[bytes] = []
        """Known once it is opened."""
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)

    def start(self) -> None:
        """Connect and begin."""
        self._thread.start()

    def put(self, write: Write) -> None:
        """Queue a write; while the server is known to be away it fails at once."""
        if self._outage.of_writes:
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
            with self._pool.lent(time.monotonic() + self._wait_s) as connection:
                prepare(connection)
                tables = self._tables = PostgresTables(connection)
                begin_writing(tables.cursor)
                if random.randrange(100) < _FORGETS_PERCENT:
                    tables.cursor.execute(_FORGET_OLD)
                self.secrets = [secret for (secret,) in tables.cursor.execute(_SECRETS).fetchall()]
                tables.cursor.execute("COMMIT")
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
            while self._indexer.has_work and not self._queue and self._ending is None:
                with self._pool.lent(time.monotonic() + _INDEX_S) as connection:
                    self._indexer.index(connection, _PORTION)
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

    def _is_past(self, deadline: float) -> bool:
        ending = self._ending
        if self._outage.of_writes:
            return True
        return time.monotonic() >= (deadline if ending is None else min(ending, deadline))

    def _carry_out(self, batch: list[Write], deadline: float, lock_ms: int = LOCK_MS) -> None:
        """Try the batch as one step; where that fails, give every write a step of its own.

        Where another process holds a session, the batch is halved, so that the others do not wait with it.
        """
        error = self._tried(batch, deadline, lock_ms)
        if error is None:
            return
        if len(batch) > 1 and is_blocked(error):
            middle = len(batch) // 2
            for half in (batch[:middle], batch[middle:]):
                self._carry_out(half, deadline, _HALF_LOCK_MS)
        elif len(batch) > 1 and not spoils_the_batch(error):
            for write in batch:
                alone = self._tried([write], deadline, lock_ms)
                if alone is not None:
                    _fail([write], alone)
        else:
            _fail(batch, error)

    def _tried(self, batch: list[Write], deadline: float, lock_ms: int) -> Exception | None:
        """Try until it is committed, or fails for a reason that stays."""
        tries, unsettled = 0, False
        also = set[int]()
        pauses = Pauses()
        while True:
            gone = True
            try:
                with self._pool.lent(deadline, urgent=True) as connection:
                    try:
                        assert self._tables is not None
                        self._tables.use(connection)
                        if not (unsettled and self._noted(self._tables, deadline) == self._number):
                            unsettled = False
                            self._attempt(self._tables, batch, lock_ms, also)
                    except Exception as error:
                        gone = is_lost(error, connection)
                        unsettled = unsettled or gone
                        if isinstance(error, psycopg.Error):
                            # psycopg takes statements for prepared that an aborted pipeline has left out.
                            connection.close()
                        raise
                self._acknowledged = self._number
                return None
            except Exception as error:
                if isinstance(error, Unlocked) and not error.places <= also:
                    also |= error.places
                    continue
                if unsettled or (gone and is_lost(error, None)):
                    _faults.report(error)
                    self._pool.drop_free()
                    if self._is_past(deadline):
                        self._outage.begin(writes=True)
                        if not unsettled:
                            self._outage.begin()
                        return unavailable(error)
                    time.sleep(pauses.next() if tries else 0)
                elif not is_conflict(error) or tries >= _TRIES:
                    return error
                else:
                    time.sleep(random.random() * 0.01 * tries)
                tries += 1

    def _attempt(self, tables: PostgresTables, batch: list[Write], lock_ms: int, also: set[int]) -> None:
        self._number += 1
        now_ms = time.time_ns() // 1_000_000
        try:
            before = tables.begin(batch, self._id, self._number, now_ms, lock_ms=lock_ms, also=also)
            if before is None or before < self._acknowledged:
                self._note_loss(tables, before)
            for write in batch:
                try:
                    apply(tables, write)
                except Unlocked as error:
                    tables.locks.remember(write, error.places)
                    raise
            tables.commit()
        except BaseException:
            with suppress(psycopg.Error):
                tables.undo()
            raise

    def _note_loss(self, tables: PostgresTables, before: int | None) -> None:
        """Go on with a server that knows less of this process than was acknowledged."""
        tables.drop_row_ids()
        if before is not None:
            _faults.report(LostWrites())
        self._acknowledged = 0

    def _noted(self, tables: PostgresTables, deadline: float) -> int | None:
        """The number of the newest attempt that was committed."""
        left_ms = max(int((deadline - time.monotonic()) * 1000), 1)
        with tables.connection.pipeline():
            begin_writing(tables.cursor, lock_ms=left_ms)
            number = tables.value(_NOTED, (self._id,))
            tables.cursor.execute("COMMIT")
        return number

    def _probe(self, connection: Connection) -> None:
        """Commit something: a server may answer, and still wait for its standby.

        An attempt that waits holds the row, so that this gives up soon, and leaves no second one to wait.
        """
        cursor = connection.cursor(binary=True)
        begin_writing(cursor)
        cursor.execute(_PROBE_LOCK)
        cursor.execute(_PROBE, (self._id,))
        cursor.execute("COMMIT")

    def _close(self) -> None:
        _faults.close()
        try:
            with self._pool.lent(time.monotonic() + _CLOSING_S) as connection:
                cursor = connection.cursor(binary=True)
                begin_writing(cursor)
                cursor.execute(_FORGET_WRITER, (self._id,))
                cursor.execute(_RESIGN, (self._id,))
                cursor.execute("COMMIT")
        except psycopg.Error as error:
            _faults.report(error)


def _fail(writes: list[Write], error: Exception, *, reported: bool = False) -> None:
    if not reported:
        _faults.report(error)
    for write in writes:
        write.result = None
        write.error = unavailable(error)
