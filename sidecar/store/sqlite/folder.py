"""The folder of a store: whose it is, and who may use it."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sidecar.store.errors import StoreUnavailable

_log = logging.getLogger(__name__)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def secure(path: Path) -> None:
    """See that a store and its folder are this user's, and that nobody else may read or change them.

    The store's files are closed to others. A folder that everybody may write to is closed to their writing:
    who may write there may put another file in the store's place.

    Raises:
        StoreUnavailable: one of them belongs to somebody else, or stays open to others.
    """
    for place, there in _places(path):
        if there.st_uid not in (os.geteuid(), 0):
            raise StoreUnavailable(
                f"{place.name} belongs to another user",
                "Use a state directory of your own, or give its files to this user.",
            )
        if not (loose := _loose(there)):
            continue
        try:
            place.chmod(stat.S_IMODE(there.st_mode) & ~loose)
        except OSError:
            raise StoreUnavailable(
                f"{place.name} is open to other users, and this user cannot close it",
                "Use a state directory that only this user may write to.",
            ) from None
        _log.warning("%s was open to other users; it is closed to them now", place.name)


def complaint(path: Path) -> str | None:
    """Why `secure` would have to do something; `None` where all is well."""
    for place, there in _places(path):
        if there.st_uid not in (os.geteuid(), 0):
            return f"{place.name} belongs to another user"
        if _loose(there):
            return f"{place.name} is open to other users"
    return None


def _places(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The folder and the files of a store, as far as they are there and the platform knows of owners."""
    if os.name != "posix":
        return
    for place in (path.parent, *(path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm"))):
        with suppress(FileNotFoundError):
            yield place, place.stat()


def _loose(there: os.stat_result) -> int:
    """The rights that others have and should not have."""
    if stat.S_ISDIR(there.st_mode):
        # A folder with the sticky bit, such as that for temporary files, lets nobody replace another's files.
        return 0 if there.st_mode & stat.S_ISVTX else there.st_mode & stat.S_IWOTH
    return there.st_mode & _OTHERS
