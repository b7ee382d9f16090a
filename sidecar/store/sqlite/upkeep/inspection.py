"""Looking at a store file without changing it: whether it is sound, and how large."""

from pathlib import Path
from typing import cast

import apsw

from sidecar.store.errors import StoreDamaged, StoreUnavailable
from sidecar.store.search.scope import MOST_POSITION, POSITION_BITS
from sidecar.store.sqlite.connection import Connection
from sidecar.store.sqlite.faults import damaged, unavailable
from sidecar.store.sqlite.schema import VERSION, checked_version
from sidecar.store.upkeep import Finding, NamespaceStats, Progress, StoreStats, judged

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


_SAVE = (
    "`context-sidecar db recover` saves what is readable, `context-sidecar db restore` brings a backup back"
)
_PLACE = f"session << {POSITION_BITS} | position"
_INDEXED_TO = "coalesce((SELECT value FROM marks WHERE name = 'search_from'), 0)"
_AGREEMENT = (
    (
        f"SELECT count(*) FROM messages WHERE row_id < {_INDEXED_TO} AND position <= {MOST_POSITION} "
        f"AND NOT EXISTS (SELECT 1 FROM search_docsize WHERE id = ({_PLACE}))",
        "messages cannot be found",
    ),
    (
        "SELECT count(*) FROM search_docsize WHERE NOT EXISTS (SELECT 1 FROM messages "
        f"WHERE session = id >> {POSITION_BITS} AND position = id & {MOST_POSITION} "
        f"AND row_id < {_INDEXED_TO})",
        "messages are indexed that are not there",
    ),
)
_MOST = 10
"""Complaints of SQLite that are told."""


def check(path: Path, progress: Progress) -> list[Finding]:
    """What is right and wrong with the store; its file is not changed.

    Raises:
        StoreUnavailable: there is no store, or a newer or another program's.
    """
    try:
        connection, version = look(path)
    except StoreDamaged as error:
        return [Finding("file", False, str(error), _SAVE)]
    try:
        found = [_version(version)]
        found += _soundness(connection, progress)
        if all(finding.ok for finding in found) and version == VERSION:
            progress("comparing tables", 0, 0)
            found += judged(lambda statement: connection.execute(statement).get)
            found.append(_index(connection, progress))
        return found
    except apsw.Error as error:
        return [Finding("file", False, f"the store cannot be read: {type(error).__name__}", _SAVE)]
    finally:
        connection.close()


def _version(version: int) -> Finding:
    if version == VERSION:
        return Finding("version", True, f"schema version {version}")
    return Finding(
        "version",
        True,
        f"schema version {version} of {VERSION}",
        "`context-sidecar db migrate` brings it up to date",
    )


def _soundness(connection: Connection, progress: Progress) -> list[Finding]:
    names = [
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name"
        ).fetchall()
    ]
    complaints: list[str] = []
    for done, name in enumerate(names):
        progress(f"reading {name}", done, len(names))
        complaints += _complaints(connection, f"PRAGMA integrity_check('{name}')")
        if len(complaints) >= _MOST:
            break
    if not complaints:
        progress("reading free pages", len(names), len(names))
        complaints = _complaints(connection, "PRAGMA quick_check")
        complaints = [each for each in complaints if "table main.search" not in each and "fts5" not in each]
    if complaints:
        told = "; ".join(complaints[:_MOST])
        return [Finding("file", False, f"the file is damaged: {told}", _SAVE)]
    return [Finding("file", True, "every page of the file is sound")]


def _index(connection: Connection, progress: Progress) -> Finding:
    """Whether the search index is sound, and has just the messages that it should have."""
    wrong: list[str] = []
    progress("reading the search index", 0, 0)
    wrong += _complaints(connection, "PRAGMA integrity_check('search')")
    for statement, complaint in _AGREEMENT:
        count = connection.execute(statement).get
        if count:
            wrong.append(f"{count} {complaint}")
    if wrong:
        return Finding("search index", False, "; ".join(wrong[:_MOST]), "`context-sidecar db reindex`")
    return Finding("search index", True, "ok")


def _complaints(connection: Connection, statement: str) -> list[str]:
    try:
        said = [str(line) for (line,) in connection.execute(statement).fetchall()]
    except apsw.Error as error:
        return [str(error)]
    return [" ".join(line.split()) for line in said if line != "ok"]


_NAMESPACES = (
    "SELECT namespace, count(*), sum(message_count), min(updated_ms), max(updated_ms) FROM sessions "
    "GROUP BY namespace ORDER BY namespace"
)
_TABLES = (
    "SELECT coalesce(tbl_name, dbstat.name), sum(pgsize) FROM dbstat LEFT JOIN sqlite_schema "
    "ON sqlite_schema.name = dbstat.name WHERE aggregate = TRUE GROUP BY 1 ORDER BY 2 DESC"
)


def measure(path: Path) -> StoreStats:
    """The sizes of a store.

    Raises:
        StoreUnavailable: it is not there, damaged, newer or older.
    """
    connection = look_at_current(path)
    try:
        return _measured(connection, path)
    except apsw.Error as error:
        raise unavailable(error) from error
    finally:
        connection.close()


def _measured(connection: Connection, path: Path) -> StoreStats:
    connection.execute("BEGIN")
    log = path.with_name(f"{path.name}-wal")
    log_bytes = log.stat().st_size if log.exists() else 0
    messages, message_bytes = connection.execute(
        "SELECT count(*), coalesce(sum(length(body)), 0) FROM messages"
    ).fetchall()[0]
    return StoreStats(
        kind="sqlite",
        schema_version=VERSION,
        bytes=path.stat().st_size + log_bytes,
        log_bytes=log_bytes,
        free_bytes=connection.pragma("freelist_count") * connection.pragma("page_size"),
        sessions=connection.execute("SELECT count(*) FROM sessions").get,
        messages=messages,
        message_bytes=message_bytes,
        summaries=connection.execute("SELECT count(*) FROM summaries").get,
        table_bytes=dict(connection.execute(_TABLES).fetchall()),
        namespaces=[NamespaceStats(*row) for row in connection.execute(_NAMESPACES).fetchall()],
    )
