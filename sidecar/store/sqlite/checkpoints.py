"""When the write-ahead log is brought back into the database file."""

import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import apsw

from sidecar.store.sqlite.cleaning import CleaningVFS
from sidecar.store.sqlite.connection import Connection, connect

_AT_REST = 512
"""Pages (4 MiB) in the log from which a pause is used for a checkpoint."""
_UNDER_LOAD = 8192
"""Pages (64 MiB) from which a checkpoint is made even though writes wait."""
_LONG = 1024
"""Pages (8 MiB) from which a commit waits a little for the checkpoint under way: a log that is never whole in
the file never begins again."""
_LITTLE_S = 0.05
_SCRUB_MS = 200
_CACHE_KIB = 256
_ENDING_S = 5.0
"""So long the end waits for a checkpoint on the thread."""


class Checkpoints:
    """The checkpoints of a writer, on a thread of their own: no write waits for the disk because of one.

    They are passive, so they are in nobody's way and leave the log's file allocated: later commits overwrite
    it, which is cheaper to sync than growing it. All pages are cleaned on the way. Only a log that held
    erased text is emptied on the writer's thread.
    """

    def __init__(
        self, connection: Connection, path: Path, vfs: str | None, later: Callable[[Callable[[], None]], None]
    ) -> None:
        """`later` lets the writer's thread call something, from any thread."""
        self._path = path
        self._base = vfs or ""
        self._later = later
        self._cleaning: CleaningVFS | None = None
        self._cleaner: Connection | None = None
        self._using = threading.Lock()
        """Held by the thread that works with the cleaning connection."""
        self._pages = 0
        self._commits = 0
        self._tried = -1
        """How many commits there had been when the newest checkpoint began."""
        self._whole = False
        """Whether the file has everything that this process knows to be in the log; a process that was killed
        may have left something there."""
        self._unscrubbed = False
        self._wanted: SimpleQueue[int | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_running = False
        self._idle = threading.Event()
        connection.set_wal_hook(self._note_pages)

    def rest(self) -> None:
        """Use a pause."""
        if self._is_running:
            return
        if self._unscrubbed and self._whole:
            self.scrub(0)
        elif (self._pages >= _AT_REST or self._unscrubbed) and self._tried != self._commits:
            self._begin()

    def keep_up(self) -> None:
        """Keep the log from growing without end while there is no pause."""
        if self._pages >= _UNDER_LOAD and not self._is_running:
            self._begin()

    def give_way(self) -> None:
        """Come before a commit: wait a little for the checkpoint under way where the log is long."""
        if self._is_running and self._pages >= _LONG:
            self._idle.wait(_LITTLE_S)

    def scrub(self, busy_ms: int = _SCRUB_MS) -> None:
        """Empty the log, which may hold erased text; tried again later if a reader is in the way."""
        self._unscrubbed = True
        if self._using.acquire(timeout=busy_ms / 1000):
            try:
                self._unscrubbed = not self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE, busy_ms)
                self._whole = self._whole or not self._unscrubbed
            finally:
                self._using.release()

    def scrub_in_pause(self) -> None:
        """The same, where nobody waits for it."""
        self._unscrubbed = True

    def close(self) -> None:
        """Leave a clean file behind."""
        if self._thread is not None:
            self._wanted.put(None)
            self._thread.join(_ENDING_S)
        if not self._using.acquire(timeout=0):
            return
        if not self._whole:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
        if self._cleaner is not None:
            self._cleaner.close()
        if self._cleaning is not None:
            self._cleaning.unregister()

    def _begin(self) -> None:
        """Have a checkpoint made on the thread."""
        self._is_running = True
        self._idle.clear()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="store-checkpoints", daemon=True)
            self._thread.start()
        self._tried = self._commits
        self._wanted.put(self._commits)

    def _run(self) -> None:
        while (commits := self._wanted.get()) is not None:
            with self._using:
                whole = self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._idle.set()

            def ended(whole: bool = whole, commits: int = commits) -> None:
                self._is_running = False
                self._whole = whole and commits == self._commits

            self._later(ended)

    def _checkpoint(self, mode: int, busy_ms: int = 0) -> bool:
        """Whether the file now has everything that was in the log."""
        try:
            if self._cleaner is None:
                self._cleaning = CleaningVFS(self._base)
                self._cleaner = connect(self._path, self._cleaning.name, busy_ms=0, cache_kib=_CACHE_KIB)
            self._cleaner.set_busy_timeout(busy_ms)
            logged, written = self._cleaner.wal_checkpoint(mode=mode)
        except (apsw.Error, OSError):
            return False
        return written >= logged

    def _note_pages(self, _connection: Any, _database: str, pages: int) -> int:
        self._pages = pages
        self._commits += 1
        self._whole = False
        return apsw.SQLITE_OK
