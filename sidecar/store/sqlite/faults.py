"""What a fault of SQLite or of the file system means for the caller."""

import errno
import os

import apsw

from sidecar.store.errors import StoreDamaged, StoreUnavailable, files_used_up

_REPAIR = (
    "Nothing was removed. `context-sidecar db recover` saves every message that can be read, "
    "`context-sidecar db restore` brings a backup back; or move the file away to begin with an empty store."
)
_ACCESS = "Check that the state directory exists, is a directory, and may be read and written by this user."
_SPACE = "Free space on the disk of the state directory, then repeat the request."
_FILES_OF_A_STORE = 8
"""What opening a store takes: two connections with their logs and the shared memory."""


def damaged() -> StoreDamaged:
    """The error for a file that is no sound store."""
    return StoreDamaged("the store file is damaged, or is no SQLite database", _REPAIR)


def unavailable(error: Exception) -> StoreUnavailable:
    """The error that tells a caller what happened and what to do; it names no local path."""
    match error:
        case StoreUnavailable():
            return error
        case apsw.FullError():
            return StoreUnavailable("the disk is full", _SPACE, retryable=True)
        case apsw.BusyError() | apsw.LockedError():
            return StoreUnavailable(
                "the store is locked by another process",
                "Close other programs that hold the store open, then repeat the request.",
                retryable=True,
            )
        case apsw.CorruptError() | apsw.NotADBError():
            return damaged()
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return StoreUnavailable("the store may not be written", _ACCESS)
        case apsw.CantOpenError():
            return _no_file_opens() or StoreUnavailable("the store file cannot be opened", _ACCESS)
        case apsw.TooBigError():
            return StoreUnavailable("a message is larger than the store can keep", "Send it in parts.")
        case apsw.NoMemError() | MemoryError():
            return StoreUnavailable("the store has no memory left", "Send smaller batches.", retryable=True)
        case apsw.IOError():
            return StoreUnavailable(
                "the disk reported an error", "Check the disk of the state directory.", retryable=True
            )
        case OSError():
            return _from_system(error)
        case _:
            return StoreUnavailable(f"the store failed: {type(error).__name__}", "See the log for details.")


def spoils_the_batch(error: Exception) -> bool:
    """Whether the fault would meet every other write of the batch too."""
    return isinstance(
        error,
        apsw.BusyError
        | apsw.LockedError
        | apsw.CorruptError
        | apsw.NotADBError
        | apsw.ReadOnlyError
        | apsw.CantOpenError
        | apsw.IOError,
    )


def _no_file_opens() -> StoreUnavailable | None:
    """The error where files are used up, which SQLite does not tell apart."""
    opened: list[int] = []
    try:
        while len(opened) < _FILES_OF_A_STORE:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return files_used_up(error)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return None


def _from_system(error: OSError) -> StoreUnavailable:
    if used_up := files_used_up(error):
        return used_up
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreUnavailable("the disk is full", _SPACE, retryable=True)
    return StoreUnavailable(f"the store file cannot be opened: {error.strerror}", _ACCESS)
