"""The thread that carries out writes, as many in one commit as have queued up."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import apsw

from sidecar.store.erasure import Expire, is_set_aside
from sidecar.store.errors import StoreUnavailable
from sidecar.store.rules import apply
from sidecar.store.search import Extract
from sidecar.store.sqlite.checkpoints import Checkpoints
from sidecar.store.sqlite.connection import Connection, connect
from sidecar.store.sqlite.faults import spoils_the_batch, unavailable
from sidecar.store.sqlite.schema import prepare, refuse_newer
from sidecar.store.sqlite.tables import SQLiteTables
from sidecar.store.submitting import FaultLog, mark_withdrawn
from sidecar.store.writes import Delete, Write

if TYPE_CHECKING:
    from sidecar.store.sqlite.fts5 import Indexer, Prepared

_PAUSE_S = 0.05
"""So long nothing is written before indexing begins, so that it never delays a burst of writes."""
_HELD_S = 0.3
"""So long indexing waits for searches at most."""
_MOST_BEHIND = 20_000
"""Messages that are not indexed from which indexing no longer waits for a pause."""
_PORTION = 64
"""Messages that are indexed in one step: a write may wait for it. While nothing is written, ever more are."""
_LARGE_PORTION = 256
_ENDING_S = 1.0
"""So long the end waits for terms that are being made."""
_BATCH = 512
"""Writes in one commit at most, so that the first does not wait long for the last."""
_BUSY_MS = 10_000
_CACHE_KIB = 16 * 1024
_TERMS_CACHE_KIB = 1024
_ERASE_TOO = {"expire", "end_spawn", "roll_back_spawn", "sweep_spawns"}
"""Writes beside `Delete` that may erase sessions; nobody waits until the log has nothing of them either."""

_faults = FaultLog()


class _Preparing:
    """Makes the terms of messages on a thread of its own, so that no write waits for that."""

    def __init__(
        self,
        path: Path,
        vfs: str | None,
        extract: Extract,
        *,
        parts: bool,
        made: "Callable[[Prepared | Exception], None]",
    ) -> None:
        self._path = path
        self._vfs = vfs
        self._extract = extract
        self._parts = parts
        self._made = made
        self._wanted: SimpleQueue[tuple[int, int] | None] = SimpleQueue()
        self.is_busy = False
        """Whether something is being made, or was made and not taken yet."""
        self._thread = threading.Thread(target=self._run, name="store-terms", daemon=True)
        self._thread.start()

    def begin(self, start: int, most: int) -> None:
        """Make the terms of up to `most` messages from a row id on."""
        self.is_busy = True
        self._wanted.put((start, most))

    def end(self) -> None:
        """Stop; what is being made is let go of where it takes long."""
        self._wanted.put(None)
        self._thread.join(_ENDING_S)

    def _run(self) -> None:
        from sidecar.store.sqlite.fts5 import Preparer

        preparer: Preparer | None = None
        connection: Connection | None = None
        while (wanted := self._wanted.get()) is not None:
            try:
                if connection is None or preparer is None:
                    connection = connect(self._path, self._vfs, busy_ms=_BUSY_MS, cache_kib=_TERMS_CACHE_KIB)
                    connection.execute("PRAGMA query_only = ON")
                    preparer = Preparer(connection, self._extract, parts=self._parts)
                connection.execute("BEGIN")
                try:
                    refuse_newer(connection)
                    unprepared = preparer.read(*wanted)
                finally:
                    connection.execute("ROLLBACK")
                outcome = preparer.made(unprepared)
            except Exception as error:
                outcome = error
            self._made(outcome)
        if connection is not None:
            connection.close()


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
        self._preparing: _Preparing | None = None
        self._prepared: Prepared | Exception | None = None
        self._portion = _PORTION
        self._wrote = 0.0
        """When something was written last, by `time.monotonic`."""
        self._calls: Sequence[Callable[[], None]] = ()
        """What other threads want done behind the batch."""
        self._queue: SimpleQueue[Write | Callable[[], None] | None] = SimpleQueue()
        self.put: Callable[[Write | None], None] = self._queue.put
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
        self._checkpoints = Checkpoints(connection, self._path, self._vfs, self._queue.put)
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
            self._portion = _PORTION
            self._checkpoints.give_way()
            carry_out(self._tables, batch)
            self._wrote = time.monotonic()
            if any(isinstance(write, Delete) and write.result for write in batch):
                if self._indexer is not None:
                    self._indexer.purge_at_once()
                self._checkpoints.scrub()
            elif any(write.verb in _ERASE_TOO and not _goes_on(write) for write in batch):
                self._checkpoints.scrub_in_pause()
            self._completed(batch)
            self._checkpoints.keep_up()
            self._keep_up()
        for call in self._calls:
            call()
        return more

    def _wait(self) -> "Write | Callable[[], None] | None":
        """What comes next; pauses are used for what nobody waits for."""
        while True:
            if self._queue.empty():
                self._checkpoints.rest()
            try:
                return self._queue.get(timeout=self._pause_s())
            except Empty:
                self._use_pause()

    def _pause_s(self) -> float | None:
        """How long to wait for a write before the pause is used."""
        indexer = self._indexer
        if indexer is None or self._prepared is not None:
            return _PAUSE_S
        if indexer.has_work:
            return None if self._preparing is not None and self._preparing.is_busy else _PAUSE_S
        return self._purge_due_s(indexer)

    def _purge_due_s(self, indexer: "Indexer") -> float | None:
        due_s = indexer.purge_due_s()
        return None if due_s is None else max(due_s, _PAUSE_S)

    def _use_pause(self) -> None:
        try:
            indexer = self._made_indexer()
        except OSError as error:
            _faults.report(error)
            return
        if self._queue.empty():
            self._add_prepared()
        if indexer.has_work:
            if not self._waits():
                self._prepare()
            return
        if indexer.purge_due_s() != 0:
            return
        while self._queue.empty() and indexer.purge():
            self._checkpoints.rest()
        self._checkpoints.scrub_in_pause()
        self._checkpoints.rest()

    def _prepare(self) -> None:
        """Have the terms of the next messages made."""
        indexer = self._made_indexer()
        if self._preparing is None:
            self._preparing = _Preparing(
                self._path, self._vfs, self._extract, parts=self._parts, made=self._when_prepared
            )
        if indexer.has_work and not self._preparing.is_busy:
            self._preparing.begin(indexer.start(), self._portion)
            self._portion = min(2 * self._portion, _LARGE_PORTION)

    def _when_prepared(self, outcome: "Prepared | Exception") -> None:
        """Let the writer's thread add the terms, at once in a pause; a burst of writes goes first."""

        def take() -> None:
            self._prepared = outcome
            if self._queue.empty() and time.monotonic() - self._wrote >= _PAUSE_S:
                self._use_pause()

        self._queue.put(take)

    def _add_prepared(self) -> None:
        """Add the terms that were made to the index."""
        prepared, self._prepared = self._prepared, None
        if prepared is None or self._preparing is None:
            return
        self._preparing.is_busy = False
        if isinstance(prepared, Exception):
            self._made_indexer().failed(prepared)
        else:
            self._made_indexer().add(prepared)

    def _made_indexer(self) -> "Indexer":
        if self._indexer is None:
            from sidecar.store.sqlite.fts5 import Indexer

            self._indexer = Indexer(self._tables.connection, parts=self._parts)
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
                self._add_prepared()
                self._prepare()

    def _refuse_all(self, error: Exception) -> None:
        """Answer every write with the failure, so that nobody waits for a writer that is no more."""
        more = True
        while more:
            batch, more = self._next_batch(self._queue.get())
            _fail(batch, error)
            self._completed(batch)

    def _next_batch(self, first: "Write | Callable[[], None] | None") -> tuple[list[Write], bool]:
        queue = self._queue
        taken = [first]
        taken += [queue.get_nowait() for _ in range(min(queue.qsize(), _BATCH - 1))]
        batch: list[Write] = []
        calls: list[Callable[[], None]] = []
        with self._claim:
            for each in taken:
                if isinstance(each, Write):
                    if not each.withdrawn:
                        each.started = True
                        batch.append(each)
                elif each is not None:
                    calls.append(each)
        self._calls = calls
        return batch, None not in taken

    def _close(self, connection: Connection) -> None:
        _faults.close()
        if self._preparing is not None:
            self._preparing.end()
        try:
            self._made_indexer().purge_at_end()
            self._checkpoints.close()
        except (apsw.Error, OSError, StoreUnavailable) as error:
            _faults.report(error)
        finally:
            connection.close()


def _goes_on(write: Write) -> bool:
    """Whether the write is a step of an erasure that others follow."""
    return isinstance(write, Expire) and getattr(write.result, "rest", None) is not None


def carry_out(tables: SQLiteTables, batch: list[Write]) -> None:
    """Try the batch as one step; where that fails, give every write a step of its own."""
    error = _attempt(tables, batch)
    if error is None:
        return
    if len(batch) == 1 or spoils_the_batch(error):
        _fail(batch, error)
        return
    for write in batch:
        alone = _attempt(tables, [write])
        if alone is not None:
            _fail([write], alone)


def _attempt(tables: SQLiteTables, batch: list[Write]) -> Exception | None:
    # What is lost with the power of a session that is set aside is erased again by the next start.
    waits = not all(isinstance(write, Expire) and is_set_aside(write.ref) for write in batch)
    if not waits:
        tables.connection.execute("PRAGMA synchronous = NORMAL")
    try:
        return _tried(tables, batch)
    finally:
        if not waits:
            tables.connection.execute("PRAGMA synchronous = FULL")


def _tried(tables: SQLiteTables, batch: list[Write]) -> Exception | None:
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
