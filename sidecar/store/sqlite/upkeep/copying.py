"""Whole copies of a store file, made while other processes write to it."""

import os
from pathlib import Path
from typing import Any, cast

import apsw

from sidecar.store.errors import StoreDamaged
from sidecar.store.sqlite.cleaning import CleaningVFS
from sidecar.store.sqlite.faults import unavailable
from sidecar.store.sqlite.upkeep.looking import look
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
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
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
        progress("checking the copy", 0, 0)
        if writing.pragma("quick_check") != "ok":
            raise StoreDamaged(
                "the store is damaged, so is its copy", "`context-sidecar db recover` saves what is readable."
            )
    finally:
        writing.close()
        vfs.unregister()


def leftovers(path: Path) -> list[Path]:
    """The files that are there of a store: its file, and the logs beside it, which SQLite would read with any
    other file of that name."""
    found = (path.with_name(path.name + suffix) for suffix in ("-journal", "-wal", "-shm", ""))
    return [file for file in found if file.exists()]


def move_aside(path: Path, stamp: str) -> Path | None:
    """Give a store file and the logs beside it another name, so that nothing of it is lost.

    The new name, `None` where there is nothing.
    """
    before = leftovers(path)
    kept = path.with_name(f"{path.name}.replaced-{stamp}")
    number = 1
    while leftovers(kept):
        number += 1
        kept = path.with_name(f"{path.name}.replaced-{stamp}-{number}")
    for file in before:
        file.rename(kept.with_name(kept.name + file.name.removeprefix(path.name)))
    return kept if before else None


def _remove(part: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        part.with_name(part.name + suffix).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
