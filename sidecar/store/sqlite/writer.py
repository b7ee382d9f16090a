"""The thread that carries out writes, as many in one commit as have queued up."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import apsw

from sidecar.store.applying import apply
from sidecar.store.errors import StoreUnavailable
from sidecar.store.search import Extract
from sidecar.store.sqlite.checkpoints import Checkpoints
from sidecar.store.sqlite.connection import Connection, connect
from sidecar.store.sqlite.faults import spoils_the_batch, unavailable
from sidecar.store.sqlite.schema import prepare
from sidecar.store.sqlite.tables import SQLiteTables
from sidecar.store.submitting import mark_withdrawn
from sidecar.store.writes import Delete, Write

if TYPE_CHECKING:
    from sidecar.store.sqlite.indexer import Indexer

_PAUSE_S = 0.05
"""So long nothing is written before indexing begins, so that it never delays a burst of writes."""
_HELD_S = 0.3
"""So long indexing waits for searches at most."""
_BATCH = 512
"""Writes in one commit at most, so that the first does not wait long for the last."""
_BUSY_MS = 10_000
_CACHE_KIB = 16 * 1024
_ERASE_TOO = {"expire", "end_spawn", "roll_back_spawn", "sweep_spawns"}
"""Writes beside `Delete` that may erase sessions; nobody waits until the log has nothing of them either."""


class Writer:
    """One thread with one connection.

    `opened`, `completed` and `closed` are called on the writer's thread, `completed` once a batch, after the
    commit, with the writes in the order of `put`. `hold` says whether indexing had better wait, since it
    would take turns with something that a request waits for.
    """

    def __init__(
        self,
        path: Path,
        vfs: str | None,
        *,
        opened: Callable[[StoreUnavailable | None], None],
        completed: Callable[[list[Write]], None],
        closed: Callable[[], None],
        extract: Extract,
        hold: Callable[[], bool],
    ) -> None:
        self._path = path
        self._vfs = vfs
        self._opened = opened
        self._completed = completed
        self._closed = closed
        self._extract = extract
        self._hold = hold
        self._held_since: float | None = None
        self._indexer: Indexer | None = None
        self._queue: SimpleQueue[Write | None] = SimpleQueue()
        self.put = self._queue.put
        """Queue a write; `None` ends the thread when everything before is done."""
        self._claim = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)

    def start(self) -> None:
        """Open the file and begin."""
        self._thread.start()

    @property
    def indexing(self) -> bool:
        """Whether there is something to index, as far as known."""
        return self._indexer is None or self._indexer.has_work

    def withdraw(self, write: Write) -> bool:
        """Take a queued write back, unless it has begun."""
        with self._claim:
            if write.started or write.withdrawn:
                return False
            mark_withdrawn(write)
            return True

    def _run(self) -> None:
        try:
            connection = connect(self._path, self._vfs, busy_ms=_BUSY_MS, cache_kib=_CACHE_KIB)
        except (apsw.Error, OSError) as error:
            self._opened(unavailable(error))
            return
        try:
            prepare(connection, busy_ms=_BUSY_MS)
        except Exception as error:
            connection.close()
            self._opened(unavailable(error))
            return
        self._tables = SQLiteTables(connection)
        self._checkpoints = Checkpoints(connection, self._path, self._vfs)
        self._opened(None)
        try:
            while self._serve():
                pass
        except Exception as error:
            self._refuse_all(error)
        finally:
            self._close(connection)
            self._closed()

    def _serve(self) -> bool:
        """Carry out what has queued up; false at the end of the queue."""
        batch, more = self._next_batch(self._wait())
        if batch:
            self._carry_out(batch)
            if any(isinstance(write, Delete) and write.result for write in batch):
                self._checkpoints.scrub()
            elif any(write.verb in _ERASE_TOO for write in batch):
                self._checkpoints.scrub_in_pause()
            self._completed(batch)
            self._checkpoints.keep_up()
            self._index_behind(len(batch))
        return more

    def _wait(self) -> Write | None:
        """The next write; pauses are used for what nobody waits for."""
        if self._queue.empty():
            self._checkpoints.rest()
        while True:
            indexer = self._indexer
            pause_s = _PAUSE_S if indexer is None or indexer.has_work else indexer.rests_s
            try:
                return self._queue.get(timeout=pause_s)
            except Empty:
                self._index_in_pause()

    def _index_in_pause(self) -> None:
        if self._indexer is None:
            from sidecar.store.sqlite.indexer import Indexer

            self._indexer = Indexer(self._tables.connection, self._extract, self._checkpoints.note_rewriting)
            self._note_touched(0)
        self._indexer.look_at_rested()
        while self._queue.empty() and self._indexer.has_work and not self._waits():
            self._indexer.step()
            self._checkpoints.rest()

    def _waits(self) -> bool:
        """Whether the index waits for a search; not for long, though one follows the other."""
        if not self._hold():
            self._held_since = None
            return False
        now = time.monotonic()
        self._held_since = self._held_since or now
        return now - self._held_since < _HELD_S

    def _index_behind(self, writes: int) -> None:
        if self._indexer is not None:
            self._note_touched(writes)
            if self._indexer.lags:
                self._indexer.step()

    def _note_touched(self, writes: int) -> None:
        assert self._indexer is not None
        self._indexer.note(self._tables.touched, writes)
        self._tables.touched.clear()

    def _refuse_all(self, error: Exception) -> None:
        """Answer every write with the failure, so that nobody waits for a writer that is no more."""
        more = True
        while more:
            batch, more = self._next_batch(self._queue.get())
            _fail(batch, error)
            self._completed(batch)

    def _next_batch(self, first: Write | None) -> tuple[list[Write], bool]:
        queue = self._queue
        taken = [first]
        taken += [queue.get_nowait() for _ in range(min(queue.qsize(), _BATCH - 1))]
        batch: list[Write] = []
        with self._claim:
            for write in taken:
                if write is not None and not write.withdrawn:
                    write.started = True
                    batch.append(write)
        return batch, None not in taken

    def _carry_out(self, batch: list[Write]) -> None:
        """Try the batch as one step; where that fails, give every write a step of its own."""
        error = self._attempt(batch)
        if error is None:
            return
        if len(batch) > 1 and not spoils_the_batch(error):
            for write in batch:
                alone = self._attempt([write])
                if alone is not None:
                    _fail([write], alone)
        else:
            _fail(batch, error)

    def _attempt(self, batch: list[Write]) -> Exception | None:
        tables = self._tables
        try:
            tables.begin(time.time_ns() // 1_000_000)
            for write in batch:
                apply(tables, write)
            tables.commit()
            if tables.rewriting:
                self._checkpoints.note_rewriting()
        except Exception as error:
            return self._undone(error)
        return None

    def _undone(self, error: Exception) -> Exception:
        try:
            self._tables.undo()
        except apsw.Error as failed:
            return failed
        return error

    def _close(self, connection: Connection) -> None:
        try:
            self._checkpoints.close()
            connection.close()
        except apsw.Error as error:
            _report(error)


def _fail(writes: list[Write], error: Exception) -> None:
    _report(error)
    for write in writes:
        write.result = None
        write.error = unavailable(error)


def _report(error: Exception) -> None:
    import logging

    logging.getLogger(__name__).error("the store failed", exc_info=error)
