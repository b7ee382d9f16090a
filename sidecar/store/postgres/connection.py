"""Connections to the server, typed, with a deadline, and without state that another transaction could miss.

A pooler in transaction mode gives every transaction another connection to the server. So nothing is set for a
session: each transaction begins with `begin_writing` or `begin_reading`, which set what it needs for itself.
"""

import math
import os
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

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
_ENCODING = {"client_encoding": "UTF8"}

_PREPARE_FROM = 5
"""Times that a statement is run before it is prepared."""
_LONGEST_READ_S = 3600.0
_LEAST_CONNECT_S = 2
"""psycopg tries one address for no shorter time."""
_SESSION = """
    SET tcp_keepalives_idle = 10;
    SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = '15s'
"""
"""The server watches the connection as we do: what a machine that has vanished had locked becomes free."""
# A statement_timeout would end the wait of a COMMIT for a standby, and report the commit as done.
_WRITING = f"""
    SELECT set_config('search_path', '{SCHEMA}', true),
        set_config('idle_in_transaction_session_timeout', '15s', true),
        set_config('lock_timeout', %s, true),
        set_config('statement_timeout', '0', true),
        set_config('synchronous_commit',
            coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true)
"""
LOCK_MS = 1000
"""Milliseconds to wait for a lock: a batch is held up that long by a process that stands still."""
_READING = f"""
    BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    SET LOCAL search_path = {SCHEMA};
    SET LOCAL idle_in_transaction_session_timeout = '60s';
"""

Prepare = Literal["auto", "on", "off"]
"""Whether statements are prepared on the server: `auto` does so unless there is a pooler in between."""


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

    deadline: float
    """When statements give up, by the monotonic clock; the connection is of no use after that."""

    def pipeline(self) -> AbstractContextManager[Any]: ...
    def close(self) -> None: ...
    def run(self, statements: str) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def idle(self) -> bool: ...
    @property
    def pooled(self) -> bool: ...


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
        return make_conninfo("", **{**_DEFAULTS, **given, **_ENCODING})
    if named := next((name for name in _FILES if name in given), None):
        raise StoreUnavailable(
            f"store.url names a file in {named}, which a host may not",
            "Set store.url in the configuration file.",
        )
    for variable in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[variable]
    nothing = dict.fromkeys(("passfile", "sslcert", "sslkey"), _NO_FILE)
    return make_conninfo("", **{**_DEFAULTS, **given, **_ENCODING, **nothing, "gssencmode": "disable"})


class Overdue(psycopg.OperationalError):
    """The server has not answered before the deadline."""


class _BoundedConnection(psycopg.Connection[Any]):
    """A connection whose statements end at a deadline, whatever the server does."""

    deadline = math.inf
    pooled = False
    """Whether there is a pooler between this process and the server."""

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        """The result of a step of the protocol."""
        if self.deadline < math.inf:
            gen = _bounded(gen, self.deadline)
        return super().wait(gen, *args, **options)

    def run(self, statements: str) -> None:
        """Run one statement or several in a single message."""
        self.execute(statements.encode(), prepare=False)

    @property
    def idle(self) -> bool:
        """Whether it is outside of any transaction, so that another one may begin."""
        return self.pgconn.transaction_status == TransactionStatus.IDLE


def _bounded(gen: Generator[Any, Any, Any], deadline: float) -> Generator[Any, Any, Any]:
    """The same steps; psycopg wakes them up every 0.1 seconds while nothing comes."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() >= deadline:
                raise Overdue("the PostgreSQL server did not answer in time")
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value


def connect(conninfo: str, *, deadline: float = math.inf, prepare: Prepare = "auto") -> Connection:
    """A connection in which every statement is its own transaction until one begins.

    Raises:
        psycopg.Error: the server cannot be reached before the deadline, or refuses.
    """
    connection = _BoundedConnection.connect(_bounded_conninfo(conninfo, deadline), autocommit=True)
    try:
        connection.prepare_threshold = None
        connection.deadline = deadline
        adapt(connection.adapters)
        found = connection.execute("SELECT pg_backend_pid()::int8").fetchone()
        # A pooler makes up the process id that it tells its clients.
        connection.pooled = found != (connection.pgconn.backend_pid,)
        if not connection.pooled:
            connection.run(_SESSION)
        if prepare == "on" or (prepare == "auto" and not connection.pooled):
            connection.prepare_threshold = _PREPARE_FROM
    except BaseException:
        connection.close()
        raise
    return cast(Connection, connection)


def begin_writing(cursor: Cursor, *, lock_ms: int = LOCK_MS) -> None:
    """Begin a transaction that is durable once its `COMMIT` has returned; best within a pipeline.

    It waits for a lock for `lock_ms` milliseconds; 0 sets no limit.
    """
    cursor.execute("BEGIN")
    cursor.execute(_WRITING, (str(lock_ms),))


def begin_reading(connection: Connection, more: str = "") -> None:
    """Begin a view that later commits do not change; `more` are settings of the transaction.

    The server gives up when the connection's deadline is over, as this process does.
    """
    left_ms = min(connection.deadline - time.monotonic(), _LONGEST_READ_S) * 1000
    connection.run(f"{_READING} SET LOCAL statement_timeout = {max(int(left_ms), 1)}; {more}")


def _bounded_conninfo(conninfo: str, deadline: float) -> str:
    """The connection with what is left of the time divided among its hosts."""
    if deadline == math.inf:
        return conninfo
    given = conninfo_to_dict(conninfo)
    hosts = str(given.get("hostaddr") or given.get("host") or "").count(",") + 1
    most = max((deadline - time.monotonic()) / hosts, _LEAST_CONNECT_S)
    timeout = float(given.get("connect_timeout") or 0)
    return make_conninfo(conninfo, connect_timeout=int(min(timeout, most) if timeout > 0 else most))
