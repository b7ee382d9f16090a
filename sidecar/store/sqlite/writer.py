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
from sidecar.store.submitting import FaultLog, mark_withdrawn
from sidecar.store.writes import Delete, Write

if TYPE_CHECKING:
    from sidecar.store.sqlite.fts5 import Indexer

_PAUSE_S = 0.05
"""So long nothing is written before indexing begins, so that it never delays a burst of writes."""
_HELD_S = 0.3
"""So long indexing waits for searches at most."""
_MOST_BEHIND = 20_000
"""Messages that are not indexed from which indexing no longer waits for a pause."""
_PORTION = 64
"""Messages that are indexed in one step: a write may wait for it. While nothing is written, ever more are."""
_LARGE_PORTION = 256
_BATCH = 512
"""Writes in one commit at most, so that the first does not wait long for the last."""
_BUSY_MS = 10_000
_CACHE_KIB = 16 * 1024
_ERASE_TOO = {"expire", "end_spawn", "roll_back_spawn", "sweep_spawns"}
"""Writes beside `Delete` that may erase sessions; nobody waits until the log has nothing of them either."""

_faults = FaultLog()


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
        parts: bool,
        hold: Callable[[], bool],
    ) -> None:
        self._path = path
        self._vfs = vfs
        self._opened = opened
        self._completed = completed
        self._closed = closed
        self._extract = extract
        self._parts = parts
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
                if self._indexer is not None:
                    self._indexer.purge_at_once()
                self._checkpoints.scrub()
            elif any(write.verb in _ERASE_TOO for write in batch):
                self._checkpoints.scrub_in_pause()
            self._completed(batch)
            self._checkpoints.keep_up()
            self._keep_up()
        return more

    def _wait(self) -> Write | None:
        """The next write; pauses are used for what nobody waits for."""
        if self._queue.empty():
            self._checkpoints.rest()
        while True:
            indexer = self._indexer
            pause_s = _PAUSE_S if indexer is None or indexer.has_work else self._purge_due_s(indexer)
            try:
                return self._queue.get(timeout=pause_s)
            except Empty:
                self._use_pause()

    def _purge_due_s(self, indexer: "Indexer") -> float | None:
        due_s = indexer.purge_due_s()
        return None if due_s is None else max(due_s, _PAUSE_S)

    def _use_pause(self) -> None:
        try:
            indexer = self._made_indexer()
        except OSError as error:
            _faults.report(error)
            return
        portion = _PORTION
        while self._queue.empty() and indexer.has_work and not self._waits():
            indexer.index(portion)
            self._checkpoints.note_rewriting()
            self._checkpoints.rest()
            portion = min(2 * portion, _LARGE_PORTION)
        if indexer.has_work or indexer.purge_due_s() != 0:
            return
        while self._queue.empty() and indexer.purge():
            self._checkpoints.note_rewriting()
            self._checkpoints.rest()
        self._checkpoints.scrub_in_pause()

    def _made_indexer(self) -> "Indexer":
        if self._indexer is None:
            from sidecar.store.sqlite.fts5 import Indexer

            self._indexer = Indexer(self._tables.connection, self._extract, parts=self._parts)
        return self._indexer

    def _waits(self) -> bool:
        """Whether the index waits for a search; not for long, though one follows the other."""
        if not self._hold():
            self._held_since = None
            return False
        now = time.monotonic()
        self._held_since = self._held_since or now
        return now - self._held_since < _HELD_S

    def _keep_up(self) -> None:
        """Index what was written, where too much of it would have to be looked through."""
        indexer = self._indexer
        if indexer is not None:
            indexer.note()
            if self._tables.take_row_ids(0) - indexer.indexed_to > _MOST_BEHIND:
                indexer.index(_LARGE_PORTION)
                self._checkpoints.note_rewriting()

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
        if carry_out(self._tables, batch):
            self._checkpoints.note_rewriting()

    def _close(self, connection: Connection) -> None:
        _faults.close()
        try:
            self._made_indexer().purge_at_end()
            self._checkpoints.close()
        except (apsw.Error, OSError) as error:
            _faults.report(error)
        finally:
            connection.close()


def carry_out(tables: SQLiteTables, batch: list[Write]) -> bool:
    """Try the batch as one step; where that fails, give every write a step of its own.

    Whether rows with text in them may have been moved or erased.
    """
    error = _attempt(tables, batch)
    if error is None:
        return tables.rewriting
    if len(batch) == 1 or spoils_the_batch(error):
        _fail(batch, error)
        return False
    rewriting = False
    for write in batch:
        alone = _attempt(tables, [write])
        if alone is None:
            rewriting = rewriting or tables.rewriting
        else:
            _fail([write], alone)
    return rewriting


def _attempt(tables: SQLiteTables, batch: list[Write]) -> Exception | None:
    try:
        tables.begin(time.time_ns() // 1_000_000)
        for write in batch:
            apply(tables, write)
        tables.commit()
    except Exception as error:
        try:
            tables.undo()
        except apsw.Error as failed:
            return failed
        return error
    return None


def _fail(writes: list[Write], error: Exception) -> None:
    _faults.report(error)
    for write in writes:
        write.result = None
        write.error = unavailable(error)
