"""Watches the calls of engines: counts them, and tells of those that fail."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING

from sidecar.server.failures import EngineFailed
from sidecar.server.figures import Figures
from sidecar.server.log_records import about

if TYPE_CHECKING:
    from sidecar.server.seat import Seat
    from sidecar.server.telemetry.telemetry import Telemetry

_log = logging.getLogger(__name__)


class EngineWatch:
    """What is known of the calls of all engines of one sidecar."""

    def __init__(self) -> None:
        self.figures = Figures()
        self.telemetry: Telemetry | None = None

    def ended(
        self, seat: Seat, method: str, session_id: str, began: float, error: BaseException | None
    ) -> None:
        """Take in the end of a call that began at `began`, by `time.perf_counter`."""
        took = perf_counter() - began
        self.figures.of(method).took(took, failed=error is not None)
        if self.telemetry is not None:
            self.telemetry.engine_called(seat.id, method, session_id, took, error is not None)
        if isinstance(error, EngineFailed):
            _tell(seat, method, session_id, took, error)


def _tell(seat: Seat, method: str, session_id: str, took: float, error: EngineFailed) -> None:
    cause = error.__cause__ if error.unforeseen else None
    _log.log(
        logging.INFO if error.quarantined else logging.ERROR if cause else logging.WARNING,
        "%s",
        error.message,
        exc_info=cause,
        extra=about(
            event="engineFailed",
            engine=seat.id,
            method=method,
            sessionId=session_id or None,
            ms=round(took * 1000, 1),
            code=error.code,
        ),
    )
