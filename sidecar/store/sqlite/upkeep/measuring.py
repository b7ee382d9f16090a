"""How large a store file is, and what is in it."""

from pathlib import Path

import apsw

from sidecar.store.sqlite.connection import Connection
from sidecar.store.sqlite.faults import unavailable
from sidecar.store.sqlite.schema import VERSION
from sidecar.store.sqlite.upkeep.looking import look_at_current
from sidecar.store.upkeep import NamespaceStats, StoreStats

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
