"""A log on stderr that never blocks, whether or not anybody reads it."""

import logging
import os
import select
import sys

_PIECE = 4096
"""Bytes that a pipe which is ready for writing always takes at once."""


class StderrHandler(logging.Handler):
    """Writes records to descriptor 2, and drops what the reader at its other end leaves no room for."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            data = (self.format(record) + "\n").encode("utf-8", "backslashreplace")
        except Exception:
            return
        for start in range(0, len(data), _PIECE):
            if not _write(data[start : start + _PIECE]):
                return


def log_to_stderr(level: str) -> None:
    """Send every log record of at least `level` (such as `warning`) to stderr.

    Raises:
        ValueError: there is no such level.
    """
    handler = StderrHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.setLevel(level.upper())
    root.handlers[:] = [handler]


def _write(piece: bytes) -> bool:
    try:
        if sys.platform != "win32" and not select.select([], [2], [], 0)[1]:
            return False
        os.write(2, piece)
    except (OSError, ValueError):
        return False
    return True
