"""When the write-ahead log is brought back into the database file."""

from pathlib import Path
from typing import Any

import apsw

from sidecar.store.sqlite.cleaning import CleaningVFS
from sidecar.store.sqlite.connection import Connection, connect

_AT_REST = 512
"""Pages (4 MiB) in the log from which a pause is used for a checkpoint."""
_UNDER_LOAD = 8192
"""Pages (64 MiB) from which a checkpoint is made even though writes wait."""
_SCRUB_MS = 200
_CACHE_KIB = 256


class Checkpoints:
    """The checkpoints of a writer, made on its thread.

    They are passive, so they wait for nobody and leave the log's file allocated: later commits overwrite it,
    which is cheaper to sync than growing it. Where rows were rewritten, the pages are cleaned on the way.
    """

    def __init__(self, connection: Connection, path: Path, vfs: str | None) -> None:
        self._connection = connection
        self._path = path
        self._base = vfs or ""
        self._cleaning: CleaningVFS | None = None
        self._cleaner: Connection | None = None
        self._pages = 0
        self._rewritten = True
        """Whether the log may hold pages to clean; a process that was killed may have left some."""
        self._unscrubbed = False
        self._version: int | None = None
        connection.set_wal_hook(self._note_pages)

    def note_rewriting(self) -> None:
        """Say that the last commit did more than add rows at the end."""
        self._rewritten = True

    def rest(self) -> None:
        """Use a pause."""
        if self._unscrubbed:
            self._scrub(0)
        elif self._pages >= _AT_REST:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)

    def keep_up(self) -> None:
        """Keep the log from growing without end while there is no pause."""
        if self._pages >= _UNDER_LOAD:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)

    def scrub(self) -> None:
        """Empty the log, which may hold erased text; tried again later if a reader is in the way."""
        self._scrub(_SCRUB_MS)

    def scrub_in_pause(self) -> None:
        """The same, where nobody waits for it."""
        self._unscrubbed = True

    def _scrub(self, busy_ms: int) -> None:
        self._rewritten = True
        self._unscrubbed = not self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE, busy_ms)

    def close(self) -> None:
        """Leave a clean file behind."""
        if self._rewritten:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
        if self._cleaner is not None:
            self._cleaner.close()
        if self._cleaning is not None:
            self._cleaning.unregister()

    def _checkpoint(self, mode: int, busy_ms: int = 0) -> bool:
        self._pages = 0
        try:
            self._note_others()
            connection = self._cleaning_connection(busy_ms) if self._rewritten else self._connection
            logged, written = connection.wal_checkpoint(mode=mode)
        except (apsw.Error, OSError):
            return False
        self._rewritten = self._rewritten and written < logged
        return True

    def _cleaning_connection(self, busy_ms: int) -> Connection:
        if self._cleaner is None:
            self._cleaning = CleaningVFS(self._base)
            self._cleaner = connect(self._path, self._cleaning.name, busy_ms=0, cache_kib=_CACHE_KIB)
        self._cleaner.set_busy_timeout(busy_ms)
        return self._cleaner

    def _note_others(self) -> None:
        """Where another connection has written, its pages in the log may have to be cleaned too."""
        version = self._connection.pragma("data_version")
        self._rewritten = self._rewritten or version != self._version
        self._version = version

    def _note_pages(self, _connection: Any, _database: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK
