"""Connections to the file, typed and set up for durable writes."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import apsw

from sidecar.store.sqlite.cleaning import MAX_PAGES

Value = str | int | bytes | float | None
"""What goes into a statement."""
Row = tuple[Any, ...]
"""What comes out; the columns of the statement say of which types."""


class Cursor(Protocol):
    """The part of `apsw.Cursor` that is used here."""

    def execute(self, statements: str, bindings: Sequence[Value] = ...) -> "Cursor": ...
    def executemany(self, statements: str, sequenceofbindings: Iterable[Sequence[Value]]) -> "Cursor": ...
    def fetchall(self) -> list[Row]: ...
    @property
    def get(self) -> Any: ...


class Connection(Protocol):
    """The part of `apsw.Connection` that is used here."""

    def cursor(self) -> Cursor: ...
    def execute(self, statements: str, bindings: Sequence[Value] = ...) -> Cursor: ...
    def pragma(self, name: str, value: str | int | None = ...) -> Any: ...
    def changes(self) -> int: ...
    def last_insert_rowid(self) -> int: ...
    @property
    def in_transaction(self) -> bool: ...
    def set_busy_timeout(self, milliseconds: int) -> None: ...
    def set_wal_hook(self, callable: "Callable[[Any, str, int], int] | None") -> None: ...
    def wal_checkpoint(self, *, mode: int) -> tuple[int, int]: ...
    def close(self) -> None: ...


def connect(path: Path, vfs: str | None, *, busy_ms: int, cache_kib: int) -> Connection:
    """A connection whose commits are on the disk when they return, and which overwrites what it erases.

    Raises:
        apsw.Error: the file cannot be opened.
    """
    connection = cast(Connection, apsw.Connection(str(path), vfs=vfs))
    connection.set_busy_timeout(busy_ms)
    connection.execute(f"PRAGMA cache_size = -{cache_kib}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA max_page_count = {MAX_PAGES}")
    return connection
