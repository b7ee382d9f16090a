"""Whole copies of a store file, made while other processes write to it."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import apsw

from sidecar.private_files import create
from sidecar.store.errors import StoreDamaged
from sidecar.store.sqlite.cleaning import CleaningVFS
from sidecar.store.sqlite.faults import unavailable
from sidecar.store.sqlite.schema import SECRETS
from sidecar.store.sqlite.upkeep.inspection import look
from sidecar.store.stored import SessionRef
from sidecar.store.upkeep import Progress

_PAGES = 1024
"""Pages (8 MiB) from one report of progress to the next."""


def copy_store(source: Path, target: Path, progress: Progress) -> int:
    """Write a copy of the store as it is at this moment, whole or not at all; its size in bytes.

    The copy is readable to its owner alone, is one file without a log beside it, and has nothing in it of
    what was erased. The target must not be there.

    Raises:
        StoreUnavailable: the source is no sound store, or the disk is full.
        OSError: the target cannot be written.
    """
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    reading, _ = look(source)
    try:
        create(part).close()
        try:
            _copy_pages(cast(Any, reading), part, progress)
            _sync(part)
            os.link(part, target)
        finally:
            _remove(part)
        _sync(target.parent)
    except apsw.Error as error:
        raise unavailable(error) from error
    finally:
        reading.close()
    return target.stat().st_size


def _copy_pages(reading: Any, part: Path, progress: Progress) -> None:
    """Copy one state of the source: a transaction keeps later commits out of sight."""
    reading.execute("BEGIN")
    reading.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    vfs = CleaningVFS("")
    writing: Any = apsw.Connection(str(part), vfs=vfs.name)
    try:
        writing.pragma("journal_mode", "off")
        writing.pragma("synchronous", 0)
        with writing.backup("main", reading, "main") as backup:
            while not backup.done:
                backup.step(_PAGES)
                progress("copying", backup.page_count - backup.remaining, backup.page_count)
        reading.execute("ROLLBACK")
        writing.pragma("journal_mode", "delete")
        _purge(writing)
        progress("checking the copy", 0, 0)
        if writing.pragma("quick_check") != "ok":
            raise StoreDamaged(
                "the store is damaged, so is its copy", "`context-sidecar db recover` saves what is readable."
            )
    finally:
        writing.close()
        vfs.unregister()


def keep_secrets(source: Path, target: Path) -> None:
    """Let one store know what another has made for its sessions: the hosts may hand it back.

    A source that cannot be read any more keeps nothing from being restored.
    """
    with suppress(apsw.Error):
        reading: Any = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            secrets = reading.execute("SELECT secret FROM secrets ORDER BY number").fetchall()
        finally:
            reading.close()
        add_secrets(target, [secret for (secret,) in secrets])


def add_secrets(
    target: Path,
    secrets: Iterable[bytes],
    families: Mapping[SessionRef, tuple[str | None, bool]] | None = None,
) -> None:
    """Let a store know what was made with these secrets, for sessions of these families."""
    writing: Any = apsw.Connection(str(target))
    try:
        with writing:
            writing.execute(SECRETS)
            writing.executemany(
                "INSERT OR IGNORE INTO secrets (secret) VALUES (?)", [(secret,) for secret in secrets]
            )
            writing.executemany(
                "UPDATE sessions SET family = ?, first_edition = ? WHERE namespace = ? AND session_id = ?",
                [(*family, *ref) for ref, family in (families or {}).items()],
            )
    finally:
        writing.close()


def _purge(writing: Any) -> None:
    """Take out of the copy's search index what was erased; a store from before it has none."""
    tables = {name for (name,) in writing.execute("SELECT name FROM sqlite_schema").fetchall()}
    if "search" not in tables:
        return
    for name in ("search_erased", "search_purging"):
        if writing.execute("SELECT value FROM marks WHERE name = ?", (name,)).get is None:
            continue
        writing.pragma("secure_delete", 1)
        writing.execute("INSERT INTO search(search) VALUES ('optimize')")
        writing.execute("DELETE FROM marks WHERE name = ?", (name,))


def leftovers(path: Path) -> list[Path]:
    """The files that are there of a store: its file, and the logs beside it, which SQLite would read with any
    other file of that name."""
    found = (path.with_name(path.name + suffix) for suffix in ("-journal", "-wal", "-shm", ""))
    return [file for file in found if file.exists()]


def free_name(path: Path, stamp: str) -> Path:
    """A name for a store that gives way to another one, which nothing has yet."""
    kept = path.with_name(f"{path.name}.replaced-{stamp}")
    number = 1
    while leftovers(kept):
        number += 1
        kept = path.with_name(f"{path.name}.replaced-{stamp}-{number}")
    return kept


def _remove(part: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        part.with_name(part.name + suffix).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
