"""Takes what an engine's process writes to standard error over into the sidecar's log."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from sidecar.server.log_records import CHILD_LINE, about

LINES_A_SECOND = 40


class _Record(Struct):
    level: int
    message: str
    fields: dict[str, str | int | float] = {}
    trace: str | None = None


class _Line(Struct, rename="camel"):
    child_log: _Record


_decode = msgspec.json.Decoder(_Line).decode


class ChildLog:
    """Passes on a bounded number of lines a second, each with the engine's name."""

    def __init__(self, engine_id: str) -> None:
        self._engine_id = engine_id
        self._log = logging.getLogger(f"sidecar.engines.{engine_id}")
        self._second = 0
        self._lines = 0

    def take(self, line: str) -> None:
        """Log a line, or pass over it."""
        second = int(time.monotonic())
        if second != self._second:
            if self._lines > LINES_A_SECOND:
                self._write(logging.WARNING, f"{self._lines - LINES_A_SECOND} more lines are left out", {})
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines <= LINES_A_SECOND:
            self._pass_on(line)

    def _pass_on(self, line: str) -> None:
        record = None
        if line.startswith(CHILD_LINE):
            try:
                record = _decode(line).child_log
            except msgspec.DecodeError:
                record = None
        if record is None:
            self._write(logging.WARNING, line, {})
            return
        message = f"{record.message}\n{record.trace}" if record.trace else record.message
        self._write(record.level, message, record.fields)

    def _write(self, level: int, message: str, fields: Mapping[str, object]) -> None:
        self._log.log(level, "%s", message, extra=about(**{**fields, "engine": self._engine_id}))
