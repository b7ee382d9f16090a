"""Files that are written: private, whole or not at all, and never through a link that somebody has laid.

What a session says is nobody else's business, whatever the umask. A file that is there keeps its mode and its
owner; where its name is a link, the file behind the link is written.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

PART = ".part"
"""How the names of files end that are not written to their end yet."""
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def make_folder(folder: Path) -> None:
    """Make the folder and those above it that are missing, for their owner alone."""
    missing: list[Path] = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def create(path: Path) -> BinaryIO:
    """A new file, for its owner alone, in a folder that is made where it is missing.

    Raises:
        FileExistsError: there is something of that name, be it a link to nothing.
    """
    make_folder(path.parent)
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _NO_LINK, 0o600), "wb")


def secret_in(path: Path, size: int) -> bytes:
    """Random bytes that stay the same: the file's, which is made where it is missing.

    Raises:
        OSError: it can neither be read nor made.
    """
    if not path.exists():
        part = part_of(path)
        try:
            with create(part) as out:
                out.write(os.urandom(size))
            try:
                os.link(part, path)
            except FileExistsError:
                pass  # somebody was faster
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
    """A name beside the path that nobody can know before."""
    return path.with_name(f".{path.name[:200]}.{os.urandom(8).hex()}{PART}")


@contextmanager
def replacing(path: Path) -> Generator[BinaryIO]:
    """A file that takes the place of `path` at the end of the block, and of nothing if that fails.

    Raises:
        PermissionError: the file that is there belongs to somebody else.
    """
    there = path.stat() if path.exists() else None
    if there is not None and not stat.S_ISREG(there.st_mode):
        # A device or a pipe, such as /dev/stdout: it has no content to be replaced.
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
    """Make this the content of the file, as `replacing` does."""
    with replacing(path) as out:
        out.write(data)


def _take_over(descriptor: int, there: os.stat_result) -> None:
    """Give a file the owner and the mode of another one."""
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
