"""A log on stderr that never blocks, whether or not anybody reads it."""

from __future__ import annotations

import logging
import os
import select
import sys

from sidecar.server.log_records import ChildFormatter, JsonFormatter, TextFormatter

CHILD = "child"
"""The format in which an engine's process writes for the sidecar."""

_FORMATTERS = {"text": TextFormatter, "json": JsonFormatter, CHILD: ChildFormatter}
_PIECE = 4096
"""Bytes that a pipe which is ready for writing always takes at once."""


class StderrHandler(logging.Handler):
    """Writes records to descriptor 2, and drops what the reader at its other end leaves no room for."""

    _torn = False
    """True where the newest line has lost its end, so that the next one has to begin a new one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            data = (self.format(record) + "\n").encode("utf-8", "backslashreplace")
        except Exception:
            return
        if self._torn:
            data = b"\n" + data
        for start in range(0, len(data), _PIECE):
            if not _write(data[start : start + _PIECE]):
                self._torn |= start > 0
                return
        self._torn = False


def log_to_stderr(level: str, log_format: str = "text") -> None:
    """Send every log record of at least `level` (such as `warning`) to stderr, as `text` or as `json`.

    Raises:
        ValueError: there is no such level.
        KeyError: there is no such format.
    """
    handler = StderrHandler()
    handler.setFormatter(_FORMATTERS[log_format]())
    root = logging.getLogger()
    root.setLevel(level.upper())
    root.handlers[:] = [handler]


def level_in_force() -> str:
    """The level from which on records are written."""
    return logging.getLevelName(logging.getLogger().getEffectiveLevel()).lower()


def _write(piece: bytes) -> bool:
    try:
        if sys.platform != "win32" and not select.select([], [2], [], 0)[1]:
            return False
        os.write(2, piece)
    except (OSError, ValueError):
        return False
    return True
