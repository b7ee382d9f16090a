"""Session stores: one contract, shared rules, and the kinds that keep rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sidecar.store.buffer import BufferStore, HoldsBuffers
    from sidecar.store.postgres.store import PostgresStore
    from sidecar.store.search import Extract
    from sidecar.store.sqlite.memory import MemoryStore
    from sidecar.store.sqlite.store import SQLiteStore


def open_store(
    kind: Literal["sqlite", "memory", "postgres"],
    path: Path | None = None,
    *,
    url: str | None = None,
    extract: Extract | None = None,
    url_by_host: bool = False,
    parts: bool | None = None,
    connections: int = 3,
    prepare: Literal["auto", "on", "off"] = "auto",
) -> MemoryStore | SQLiteStore | PostgresStore:
    """A store of this kind, not yet opened; `path` is the SQLite file, `url` the PostgreSQL connection.

    `extract` reads what is searched of a message; without it that is the whole body as text. Nothing of the
    operator's is shown to a server whose url the host has named. `parts` says whether parts of words are
    indexed; by default they are in SQLite and in memory, and not in PostgreSQL. At most `connections` to
    PostgreSQL are open; `prepare` says whether statements are prepared, by default unless there is a pooler.

    Raises:
        ValueError: the kind is unknown, or its file or connection is not told.
        StoreUnavailable: the libraries for this kind are not installed.
    """
    if kind == "memory":
        from sidecar.store.sqlite.memory import MemoryStore

        return MemoryStore(extract, parts=parts is not False)
    if kind == "sqlite":
        from sidecar.store.sqlite.store import SQLiteStore

        if path is None:
            raise ValueError("a sqlite store needs the path of its file")
        return SQLiteStore(path, extract=extract, parts=parts is not False)
    if kind == "postgres":
        if url is None:
            raise ValueError("a postgres store needs the url of its database")
        return _postgres_store()(
            url,
            extract=extract,
            url_by_host=url_by_host,
            parts=parts is True,
            connections=connections,
            prepare=prepare,
        )
    raise ValueError(f"there is no store of the kind {kind!r}")


def open_buffer(store: HoldsBuffers, namespace: str, engine: str) -> BufferStore:
    """The buffer of an engine in a namespace, kept in a store that is open."""
    from sidecar.store.buffer import Buffer

    return Buffer(store, namespace, engine)


def _postgres_store() -> type[PostgresStore]:
    try:
        from sidecar.store.postgres.store import PostgresStore
    except ImportError as error:
        from sidecar.origin import install_command
        from sidecar.store.errors import StoreUnavailable

        raise StoreUnavailable(
            "the PostgreSQL driver is not installed", f"Install it: {install_command('postgres')}"
        ) from error
    return PostgresStore
