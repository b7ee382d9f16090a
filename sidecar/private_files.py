"""Writes files privately and atomically, and never through a link planted by somebody else.

New files are private to their owner, whatever the umask. An existing file keeps its mode and owner; if its
name is a link, the target is replaced.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

PART = ".part"
"""Suffix of files that are not complete yet."""
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def make_folder(folder: Path) -> None:
    """Create the folder and its missing parents, private to their owner."""
    missing: list[Path] = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def create(path: Path) -> BinaryIO:
    """Create a file, private to its owner; also creates its folder if missing.

    Raises:
        FileExistsError: the name is taken, even if by a dangling link.
    """
    make_folder(path.parent)
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _NO_LINK, 0o600), "wb")


def secret_in(path: Path, size: int) -> bytes:
    """The random bytes stored in a file, which is created on first use.

    Raises:
        OSError: the file is damaged, or can be neither read nor created.
    """
    if not path.exists():
        part = part_of(path)
        try:
            with create(part) as out:
                out.write(os.urandom(size))
            try:
                os.link(part, path)
            except FileExistsError:
                pass  # another process was faster
            except OSError:  # a file system without links
                part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_RDONLY | _NO_LINK)
    with os.fdopen(descriptor, "rb") as file:
        found = file.read(size + 1)
    if len(found) != size:
        raise OSError(f"{path.name} is damaged; remove it")
    return found


def part_of(path: Path) -> Path:
    """An unpredictable name in the same folder."""
    return path.with_name(f".{path.name[:200]}.{os.urandom(8).hex()}{PART}")


@contextmanager
def replacing(path: Path) -> Generator[BinaryIO]:
    """A file that replaces `path` at the end of the block, unless the block fails.

    Raises:
        PermissionError: the existing file belongs to somebody else.
    """
    there = path.stat() if path.exists() else None
    if there is not None and not stat.S_ISREG(there.st_mode):
        # A device or pipe, such as /dev/stdout, has no content to replace.
        with path.open("wb") as out:
            yield out
        return
    path = path.resolve()
    part = part_of(path)
    try:
        with create(part) as out:
            if there is not None:
                _take_over(out.fileno(), there)
            yield out
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    _sync(path.parent)


def write(path: Path, data: bytes) -> None:
    """Write the file's content, as `replacing` does."""
    with replacing(path) as out:
        out.write(data)


def _take_over(descriptor: int, there: os.stat_result) -> None:
    """Copy owner and mode from another file."""
    if not hasattr(os, "fchown"):
        return
    mode = stat.S_IMODE(there.st_mode)
    mine = os.fstat(descriptor)
    if mine.st_uid != there.st_uid:
        os.fchown(descriptor, there.st_uid, -1)
    if mine.st_gid != there.st_gid:
        try:
            os.fchown(descriptor, -1, there.st_gid)
        except PermissionError:
            mode &= ~stat.S_IRWXG
    os.fchmod(descriptor, mode)


def _sync(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
