"""What a fault of PostgreSQL means for the caller."""

import psycopg
from psycopg import errors

from sidecar.store.errors import StoreUnavailable
from sidecar.store.postgres.connection import Connection, Overdue

_REACH = (
    "Check that the server runs and that store.url is right; the sidecar goes on by itself when it is back."
)


_FULL = (
    "too many clients already",
    "remaining connection slots are reserved",
    "too many connections for",
    "no more connections allowed",
    "query_wait_timeout",
)
"""What PostgreSQL and PgBouncer say where they have no connection left; libpq hands on no code."""


_GONE = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.ReadOnlySqlTransaction,
    Overdue,
)


def lost() -> StoreUnavailable:
    """The error for a server that did not come back in time."""
    return StoreUnavailable("the PostgreSQL server cannot be reached", _REACH, retryable=True)


def unavailable(error: Exception) -> StoreUnavailable:
    """The error that tells a caller what happened and what to do; it names neither host nor user."""
    match error:
        case StoreUnavailable():
            return error
        case errors.DiskFull() | errors.OutOfMemory() | errors.ConfigurationLimitExceeded():
            return StoreUnavailable(
                "the PostgreSQL server has no room left", "Free space on the server.", retryable=True
            )
        case errors.LockNotAvailable() | errors.SerializationFailure() | errors.DeadlockDetected():
            return StoreUnavailable(
                "another process holds what is to be written", "Repeat the request.", retryable=True
            )
        case errors.ReadOnlySqlTransaction():
            return StoreUnavailable(
                "the PostgreSQL server is read-only",
                "Name the primary in store.url; target_session_attrs=read-write finds it.",
                retryable=True,
            )
        case errors.InsufficientPrivilege():
            return StoreUnavailable(
                "the PostgreSQL user may not use the store",
                "Grant it CREATE on the database, or ownership of the schema context_sidecar.",
            )
        case errors.ProgramLimitExceeded() | errors.DataError():
            return StoreUnavailable("a message is larger than the store can keep", "Send it in parts.")
        case psycopg.OperationalError() if is_full(error):
            return StoreUnavailable(
                "the PostgreSQL server has no connection left",
                "Put a pooler in front of it, lower store.connections, or raise max_connections.",
                retryable=True,
            )
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return _from_connecting(str(error)) if error.sqlstate is None else lost()
        case _:
            return StoreUnavailable(f"the store failed: {type(error).__name__}", "See the log for details.")


def is_lost(error: Exception, connection: Connection | None) -> bool:
    """Whether there is no connection any more, none was to be had, or it leads to no primary."""
    if isinstance(error, _GONE):
        return True
    broken = connection is None or connection.closed
    return broken and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def is_full(error: BaseException) -> bool:
    """Whether the server, or a pooler in front of it, has no connection left."""
    return isinstance(error, psycopg.OperationalError) and any(text in str(error) for text in _FULL)


def spoils_the_batch(error: Exception) -> bool:
    """Whether the fault would meet every other write of the batch too."""
    return isinstance(error, StoreUnavailable | psycopg.OperationalError | errors.ReadOnlySqlTransaction)


def is_blocked(error: Exception) -> bool:
    """Whether another process has held a lock for too long."""
    return isinstance(error, errors.LockNotAvailable)


def is_conflict(error: Exception) -> bool:
    """Whether another process was in the way, so that the same step may succeed at once."""
    return isinstance(error, errors.SerializationFailure | errors.DeadlockDetected | errors.UniqueViolation)


def _from_connecting(text: str) -> StoreUnavailable:
    if "authentication failed" in text or "no password supplied" in text or "pg_hba.conf" in text:
        return StoreUnavailable(
            "the PostgreSQL server refuses the user", "Check user and password in store.url."
        )
    if "does not exist" in text:
        return StoreUnavailable(
            "the PostgreSQL server has no such database or user", "Create it, or mend store.url."
        )
    return lost()
