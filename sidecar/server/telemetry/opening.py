"""Opens telemetry, if what it needs is installed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidecar.server.telemetry.telemetry import Telemetry

INSTALL = 'telemetry.enabled needs the extra `otel`: pip install "context-sidecar[otel]"'

_log = logging.getLogger(__name__)


def open_telemetry() -> Telemetry | None:
    """Telemetry by the standard variables `OTEL_*`; `None`, with a line in the log, where it is not there."""
    try:
        from sidecar.server.telemetry.telemetry import Telemetry
    except ImportError:
        _log.warning("%s", INSTALL)
        return None
    return Telemetry()
