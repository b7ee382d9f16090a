"""When the write-ahead log is brought back into the database file."""

from typing import Any

import apsw

from sidecar.store.sqlite.connection import Connection

_AT_REST = 512
"""Pages (4 MiB) in the log from which a pause is used for a checkpoint."""
_UNDER_LOAD = 8192
"""Pages (64 MiB) from which a checkpoint is made even though writes wait."""
_SCRUB_MS = 200


class Checkpoints:
    """Checkpoints of the writer's connection.

    They are passive, so they wait for nobody and leave the log's file allocated: later commits overwrite it,
    which is cheaper to sync than growing it.
    """

    def __init__(self, connection: Connection, busy_ms: int) -> None:
        self._connection = connection
        self._busy_ms = busy_ms
        self._pages = 0
        self._unscrubbed = False
        connection.set_wal_hook(self._note_pages)

    def rest(self) -> None:
        """Use a pause."""
        if self._unscrubbed:
            self.scrub()
        if self._pages >= _AT_REST:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)

    def keep_up(self) -> None:
        """Keep the log from growing without end while there is no pause."""
        if self._pages >= _UNDER_LOAD:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)

    def scrub(self) -> None:
        """Empty the log, which may hold erased text; tried again later if a reader is in the way."""
        self._connection.set_busy_timeout(_SCRUB_MS)
        self._unscrubbed = not self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._connection.set_busy_timeout(self._busy_ms)

    def _checkpoint(self, mode: int) -> bool:
        self._pages = 0
        try:
            self._connection.wal_checkpoint(mode=mode)
        except apsw.Error:
            return False
        return True

    def _note_pages(self, _connection: Any, _database: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK
