"""Opening a store file to look at it, without changing or migrating it."""

from pathlib import Path
from typing import cast

import apsw

from sidecar.store.errors import StoreUnavailable
from sidecar.store.sqlite.connection import Connection
from sidecar.store.sqlite.faults import damaged, unavailable
from sidecar.store.sqlite.schema import VERSION, checked_version

_BUSY_MS = 10_000
_CACHE_KIB = 16 * 1024
_LOCKED_FROM = 0x40000000
_LOCKED_BYTES = 512
"""Where SQLite locks a file; a process that has a store open holds some of it."""


def look(path: Path) -> tuple[Connection, int]:
    """A connection that cannot write, and the version of the store's tables, which may be an older one.

    Raises:
        StoreUnavailable: there is no file, or it is no store, a newer one, or too damaged to be opened.
    """
    if not path.is_file() or path.stat().st_size == 0:
        raise StoreUnavailable(
            "there is no store yet",
            "It is made by the first `context-sidecar serve` on this state directory.",
        )
    try:
        connection = cast(Connection, apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY))
    except apsw.Error as error:
        raise unavailable(error) from error
    try:
        connection.set_busy_timeout(_BUSY_MS)
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        version = checked_version(connection)
        if version == 0:
            raise damaged()
        return connection, version
    except BaseException as error:
        connection.close()
        if isinstance(error, apsw.Error):
            raise unavailable(error) from error
        raise


def look_at_current(path: Path) -> Connection:
    """The same for what needs all tables of this version.

    Raises:
        StoreUnavailable: as `look`; also where the store is of an older version.
    """
    connection, version = look(path)
    if version != VERSION:
        connection.close()
        raise StoreUnavailable(
            f"the store has schema version {version}, this context-sidecar works with {VERSION}",
            "Run `context-sidecar db migrate` first.",
        )
    return connection


def in_use(path: Path) -> bool:
    """Whether another process has the store open. Call it where this process has not."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        with path.open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCKED_BYTES, _LOCKED_FROM)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
