"""Changes to a store file that keep what is in it: fewer pages, tables of this version."""

from pathlib import Path

import apsw

from sidecar.store.sqlite.cleaning import CleaningVFS
from sidecar.store.sqlite.connection import connect
from sidecar.store.sqlite.faults import unavailable
from sidecar.store.sqlite.schema import INDEX, VERSION, prepare
from sidecar.store.sqlite.upkeep.inspection import look, look_at_current

_BUSY_MS = 10_000
_CACHE_KIB = 16 * 1024


def vacuum(path: Path) -> tuple[int, int]:
    """Give back the room that erased messages have left; bytes of the file before and after.

    Writers wait meanwhile, and give up after their limit.

    Raises:
        StoreUnavailable: the store is not there, damaged, newer or older, locked, or the disk is full.
    """
    look_at_current(path).close()
    before = path.stat().st_size
    try:
        connection = connect(path, None, busy_ms=_BUSY_MS, cache_kib=_CACHE_KIB)
        try:
            connection.execute("INSERT INTO search(search) VALUES ('optimize')")  # drops what was erased
            connection.execute("DELETE FROM marks WHERE name IN ('search_erased', 'search_purging')")
            connection.execute("VACUUM")
            _checkpoint(path)
        finally:
            connection.close()
    except apsw.Error as error:
        raise unavailable(error) from error
    return before, path.stat().st_size


def reindex(path: Path) -> None:
    """Empty the search index; the next `serve` makes it behind its start.

    Raises:
        StoreUnavailable: the store is not there, damaged, newer or older, or locked.
    """
    look_at_current(path).close()
    try:
        connection = connect(path, None, busy_ms=_BUSY_MS, cache_kib=_CACHE_KIB)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DROP TABLE search")
            connection.execute(INDEX)
            connection.execute("DELETE FROM marks WHERE name LIKE 'search_%'")
            connection.execute("COMMIT")
            _checkpoint(path)
        finally:
            connection.close()
    except apsw.Error as error:
        raise unavailable(error) from error


def migrate(path: Path) -> tuple[int, int]:
    """Bring the tables to this version; the versions before and after.

    Raises:
        StoreUnavailable: the store is not there, damaged, newer or locked.
    """
    looking, before = look(path)
    looking.close()
    try:
        connection = connect(path, None, busy_ms=_BUSY_MS, cache_kib=_CACHE_KIB)
        try:
            prepare(connection, busy_ms=_BUSY_MS)
        finally:
            connection.close()
    except apsw.Error as error:
        raise unavailable(error) from error
    return before, VERSION


def versions(path: Path) -> tuple[int, int]:
    """The version of the tables, and the one that `migrate` would bring them to.

    Raises:
        StoreUnavailable: the store is not there, damaged or newer.
    """
    looking, before = look(path)
    looking.close()
    return before, VERSION


def _checkpoint(path: Path) -> None:
    """Bring the log into the file at once; where a reader is in the way, that is left to the next writer."""
    cleaning = CleaningVFS("")
    cleaner = connect(path, cleaning.name, busy_ms=_BUSY_MS, cache_kib=_CACHE_KIB)
    try:
        cleaner.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        pass
    finally:
        cleaner.close()
        cleaning.unregister()
