"""Connections to the server, typed and set up for durable writes."""

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sidecar.store.errors import StoreUnavailable
from sidecar.store.postgres.escaping import adapt

SCHEMA = "context_sidecar"
"""The schema of all our tables."""

Value = str | int | bytes | None | Sequence[str] | Sequence[int]
"""What goes into a statement."""
Row = tuple[Any, ...]
"""What comes out; the columns of the statement say of which types."""

_DEFAULTS = {
    "application_name": "context-sidecar",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
"""Seconds, but for `tcp_user_timeout` (milliseconds). What the connection's url says wins."""

# The server watches the connection as we do: what a machine that has vanished had claimed becomes free.
_SETUP = f"""
    SET search_path = {SCHEMA};
    SET client_encoding = 'UTF8';
    SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '60s';
    SET tcp_keepalives_idle = 10;
    SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = '15s';
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""


class Cursor(Protocol):
    """The part of `psycopg.Cursor` that is used here."""

    def execute(self, statement: str, bindings: Sequence[Value] | None = ...) -> "Cursor": ...
    def executemany(self, statement: str, bindings: Iterable[Sequence[Value]]) -> None: ...
    def fetchall(self) -> list[Row]: ...
    @property
    def rowcount(self) -> int: ...


class Connection(Protocol):
    """The part of `psycopg.Connection` that is used here."""

    def cursor(self, *, binary: bool) -> Cursor: ...
    def pipeline(self) -> AbstractContextManager[Any]: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...


_FILES = ("passfile", "service", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir")
"""Parameters of a connection that name a file, or a section of one."""
_NO_FILE = f"{os.devnull}/none"


def checked_conninfo(url: str, *, by_host: bool = False) -> str:
    """The connection with our defaults.

    A server that the host names is shown nothing of the operator's: not what is in the variables of libpq,
    which are removed from this process's environment, nor passwords and keys in the files of libpq.

    Raises:
        StoreUnavailable: it is no PostgreSQL connection, or the host names a file.
    """
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise StoreUnavailable(
            "store.url is no PostgreSQL connection",
            "Write it as postgresql://user:password@host:5432/database.",
        ) from error
    if not by_host:
        return make_conninfo("", **{**_DEFAULTS, **given})
    if named := next((name for name in _FILES if name in given), None):
        raise StoreUnavailable(
            f"store.url names a file in {named}, which a host may not",
            "Set store.url in the configuration file.",
        )
    for variable in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[variable]
    nothing = dict.fromkeys(("passfile", "sslcert", "sslkey"), _NO_FILE)
    return make_conninfo("", **{**_DEFAULTS, **given, **nothing, "gssencmode": "disable"})


def connect(conninfo: str) -> Connection:
    """A connection in which every statement is its own transaction until one begins.

    Raises:
        psycopg.Error: the server cannot be reached, or refuses.
    """
    connection = psycopg.connect(conninfo, autocommit=True)
    try:
        adapt(connection.adapters)
        connection.execute(_SETUP)
    except BaseException:
        connection.close()
        raise
    return cast(Connection, connection)
