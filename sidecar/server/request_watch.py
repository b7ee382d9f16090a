"""Watches the requests of a connection: tells of slow ones, of those that fail, and, at `debug`, of all."""

from __future__ import annotations

import logging
import math
from time import perf_counter
from typing import TYPE_CHECKING

from sidecar.protocol import errors as codes
from sidecar.rpc.errors import RpcError
from sidecar.server.log_records import about, fields_of_call

if TYPE_CHECKING:
    from msgspec import Raw

    from sidecar.rpc.call import Call
    from sidecar.rpc.envelope import JsonId
    from sidecar.server.shadow.shadow import Shadow
    from sidecar.server.telemetry.telemetry import Telemetry

_log = logging.getLogger(__name__)

_LEVELS = {
    codes.STORE_UNAVAILABLE: logging.ERROR,
    codes.ENGINE_UNAVAILABLE: logging.WARNING,
    codes.BUSY: logging.WARNING,
    codes.REQUEST_CANCELLED: logging.DEBUG,
    # Whoever runs into these has logged them, with what caused them.
    codes.ENGINE_FAILED: logging.DEBUG,
    codes.INTERNAL_ERROR: logging.DEBUG,
}
"""How much an error is worth telling; `INFO` for all others, which are the host's own."""
_EVENTS = {codes.STORE_UNAVAILABLE: "storeUnavailable"}


class RequestWatch:
    """Hears of every request; see `sidecar.rpc.observing.Observer`."""

    def __init__(self) -> None:
        self.shadow: Shadow | None = None
        """A second engine that is asked the same, where one is configured."""
        self.telemetry: Telemetry | None = None
        """Where requests are handed over, where that is configured."""
        self.follow(0)

    def follow(self, slow_call_ms: int) -> None:
        """Tell of requests that take longer than so many milliseconds; 0 for none."""
        self._slow_s = slow_call_ms / 1000 if slow_call_ms else math.inf
        self._all = _log.isEnabledFor(logging.DEBUG)

    def begun(self, call: Call, params: Raw) -> None:
        """Note when."""
        call.began = perf_counter()
        if self.telemetry is not None:
            self.telemetry.begun(call, params)

    def settled(self, call: Call, outcome: object) -> None:
        """Tell of it, where there is something to tell."""
        took = perf_counter() - call.began
        if isinstance(outcome, RpcError):
            self._tell_error(outcome, took, fields_of_call(call))
        elif self._all:
            _log.debug("answered", extra=about(**fields_of_call(call), ms=_ms(took)))
        if took >= self._slow_s:
            extra = about(event="slowCall", **fields_of_call(call), ms=_ms(took))
            _log.warning("a request took long", extra=extra)
        try:
            if self.telemetry is not None:
                self.telemetry.settled(call, outcome, took)
            if self.shadow is not None:
                self.shadow.heard(call, outcome, took)
        except Exception:
            _log.exception("a request could not be passed on to telemetry or shadow")

    def refused(self, id: JsonId, method: str, error: RpcError) -> None:
        """Tell of a request that never began."""
        self._tell_error(error, None, {"method": method[:100], "requestId": id})
        if self.telemetry is not None:
            self.telemetry.refused(method, error.code)

    def _tell_error(self, error: RpcError, took: float | None, fields: dict[str, object]) -> None:
        level = _LEVELS.get(error.code, logging.INFO)
        if _log.isEnabledFor(level):
            ms = None if took is None else _ms(took)
            extra = about(event=_EVENTS.get(error.code), **fields, ms=ms, code=error.code)
            # The text of an error may quote what the host sent, so only ours about ourselves is told.
            text = error.message if level >= logging.WARNING else "answered with an error"
            _log.log(level, "%s", text, extra=extra)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
