"""Session stores: one contract, shared rules, and the kinds that keep rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sidecar.store.search import Extract, SearchableStore


def open_store(
    kind: Literal["sqlite", "memory"], path: Path | None = None, *, extract: Extract | None = None
) -> SearchableStore:
    """A store of this kind, not yet opened; `path` is the SQLite file.

    `extract` reads what is searched of a message; without it that is the whole body as text.

    Raises:
        ValueError: the kind is unknown, or a SQLite store is asked for without a file.
    """
    if kind == "memory":
        from sidecar.store.memory.store import MemoryStore

        return MemoryStore(extract)
    if kind == "sqlite":
        from sidecar.store.sqlite.store import SQLiteStore

        if path is None:
            raise ValueError("a sqlite store needs the path of its file")
        return SQLiteStore(path, extract=extract)
    raise ValueError(f"there is no store of the kind {kind!r}")
