"""Looking after a store in PostgreSQL: what is wrong, how large it is, room given back."""

from collections.abc import Callable
from typing import TypeVar

import psycopg

from sidecar.store.errors import StoreUnavailable
from sidecar.store.postgres.connection import (
    SCHEMA,
    Connection,
    Cursor,
    begin_reading,
    checked_conninfo,
    connect,
)
from sidecar.store.postgres.faults import unavailable
from sidecar.store.postgres.schema import VERSION, checked_version, prepare
from sidecar.store.upkeep import Finding, NamespaceStats, Progress, StoreStats, judged

_T = TypeVar("_T")

_TABLES = (
    "SELECT tablename, pg_total_relation_size((schemaname || '.' || tablename)::regclass) "
    "FROM pg_catalog.pg_tables WHERE schemaname = %s ORDER BY 2 DESC"
)
_NAMESPACES = (
    "SELECT namespace, count(*), sum(message_count)::bigint, min(updated_ms), max(updated_ms) FROM sessions "
    "GROUP BY namespace ORDER BY namespace"
)


def check(url: str, progress: Progress) -> list[Finding]:
    """What is right and wrong with the tables; nothing is changed.

    Raises:
        StoreUnavailable: there is no store, it is newer, or the server cannot be reached.
    """

    def look(connection: Connection) -> list[Finding]:
        cursor = connection.cursor(binary=True)
        version = _version(cursor)
        if version < VERSION:
            hint = "`context-sidecar db migrate` brings it up to date"
            return [Finding("version", True, f"schema version {version} of {VERSION}", hint)]
        progress("comparing tables", 0, 0)
        begin_reading(connection)
        found = judged(lambda statement: cursor.execute(statement).fetchall()[0][0])
        cursor.execute("ROLLBACK")
        return [Finding("version", True, f"schema version {version}"), *found]

    return _with_server(url, look)


def measure(url: str) -> StoreStats:
    """The sizes of the store.

    Raises:
        StoreUnavailable: there is no store, it is newer or older, or the server cannot be reached.
    """

    def look(connection: Connection) -> StoreStats:
        cursor = connection.cursor(binary=True)
        _current(cursor)
        begin_reading(connection)
        tables = dict(cursor.execute(_TABLES, (SCHEMA,)).fetchall())
        messages, message_bytes = cursor.execute(
            "SELECT count(*), coalesce(sum(octet_length(body)), 0)::bigint FROM messages"
        ).fetchall()[0]
        stats = StoreStats(
            kind="postgres",
            schema_version=VERSION,
            bytes=sum(tables.values()),
            sessions=cursor.execute("SELECT count(*) FROM sessions").fetchall()[0][0],
            messages=messages,
            message_bytes=message_bytes,
            summaries=cursor.execute("SELECT count(*) FROM summaries").fetchall()[0][0],
            table_bytes=tables,
            namespaces=[NamespaceStats(*row) for row in cursor.execute(_NAMESPACES).fetchall()],
        )
        cursor.execute("ROLLBACK")
        return stats

    return _with_server(url, look)


def vacuum(url: str, progress: Progress, *, full: bool) -> tuple[int, int]:
    """Give back the room that erased messages have left; bytes of all tables before and after.

    `full` writes the tables anew, which removes what is left of erased rows and locks each table meanwhile.

    Raises:
        StoreUnavailable: there is no store, it is newer or older, or the server cannot be reached.
    """

    def tidy(connection: Connection) -> tuple[int, int]:
        cursor = connection.cursor(binary=True)
        _current(cursor)
        before = cursor.execute(_TABLES, (SCHEMA,)).fetchall()
        for done, (name, _) in enumerate(before):
            progress(f"vacuuming {name}", done, len(before))
            cursor.execute(f'VACUUM ({"FULL, " if full else ""}ANALYZE) {SCHEMA}."{name}"')
        after = cursor.execute(_TABLES, (SCHEMA,)).fetchall()
        return sum(size for _, size in before), sum(size for _, size in after)

    return _with_server(url, tidy)


def reindex(url: str) -> None:
    """Empty the search index; the next `serve` makes it behind its start.

    Raises:
        StoreUnavailable: there is no store, it is newer or older, or the server cannot be reached.
    """

    def empty(connection: Connection) -> None:
        cursor = connection.cursor(binary=True)
        _current(cursor)
        cursor.execute(f"UPDATE {SCHEMA}.messages SET terms = NULL WHERE terms IS NOT NULL")
        cursor.execute(f"DELETE FROM {SCHEMA}.search_index")
        cursor.execute(f"REINDEX INDEX {SCHEMA}.message_terms")

    _with_server(url, empty)


def versions(url: str) -> tuple[int, int]:
    """The version of the tables, and the one that `migrate` would bring them to.

    Raises:
        StoreUnavailable: there is no store, it is newer, or the server cannot be reached.
    """
    return _with_server(url, lambda connection: (_version(connection.cursor(binary=True)), VERSION))


def migrate(url: str) -> tuple[int, int]:
    """Bring the tables to this version; the versions before and after.

    Raises:
        StoreUnavailable: there is no store, it is newer, or the server cannot be reached.
    """

    def bring(connection: Connection) -> tuple[int, int]:
        before = _version(connection.cursor(binary=True))
        prepare(connection)
        return before, VERSION

    return _with_server(url, bring)


def _with_server(url: str, work: Callable[[Connection], _T]) -> _T:
    try:
        connection = connect(checked_conninfo(url))
        try:
            return work(connection)
        finally:
            connection.close()
    except psycopg.Error as error:
        raise unavailable(error) from error


def _version(cursor: Cursor) -> int:
    version = checked_version(cursor)
    if version == 0:
        raise StoreUnavailable(
            "there is no store in the database yet",
            "It is made by the first `context-sidecar serve` that uses it.",
        )
    return version


def _current(cursor: Cursor) -> None:
    version = _version(cursor)
    if version < VERSION:
        raise StoreUnavailable(
            f"the store has schema version {version}, this context-sidecar works with {VERSION}",
            "Run `context-sidecar db migrate` first.",
        )
