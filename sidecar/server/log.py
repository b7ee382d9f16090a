"""The log: what a line says besides its text, how it reaches stderr, and what is logged about requests."""

from __future__ import annotations

import logging
import math
import os
import select
import sys
import time
from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, cast

from sidecar.protocol import errors as codes
from sidecar.rpc.errors import RpcError
from sidecar.rpc.router import Call, serving

if TYPE_CHECKING:
    from msgspec import Raw

    from sidecar.rpc.envelope import JsonId
    from sidecar.server.background.telemetry import Telemetry


LONGEST_CHILD_LINE = 3500
"""Bytes of a line that an engine's process writes for the sidecar to log; longer ones are cut."""
CHILD_LINE = '{"childLog":'
"""How such a line begins."""

Fields = Mapping[str, object]

CHILD = "child"
"""The format in which an engine's process writes for the sidecar."""
_PIECE = 4096
"""Bytes that a pipe which is ready for writing always takes at once."""
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

_log = logging.getLogger(__name__)


def about(**fields: object) -> dict[str, object]:
    """The `extra` of a line: its members by name, in the order given; those that are `None` are left out."""
    return {"about": {name: value for name, value in fields.items() if value is not None}}


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Everything that a line says beside its text; its own members win over those of the running request."""
    call = serving.get()
    own = cast("Fields", record.__dict__.get("about") or {})
    return {**fields_of_call(call), **own} if call is not None else dict(own)


def fields_of_call(call: Call) -> dict[str, object]:
    """What is known of a request."""
    facts = getattr(call.params, "session", None)
    if facts is not None and hasattr(facts, "request_id"):
        # In an engine's process: what the sidecar said about the request that the engine is asked for.
        fields = {
            "method": facts.method or None,
            "requestId": facts.request_id,
            "sessionId": facts.session_id or None,
        }
    else:
        session_id = getattr(call.params, "session_id", None)
        fields = {"method": call.method, "requestId": call.id, "sessionId": session_id}
    return {name: value for name, value in fields.items() if value is not None}


class TextFormatter(logging.Formatter):
    """A line for people: time, level, logger, text, then what it is about as `name=value`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line without a traceback."""
        line = super().formatMessage(record)
        fields = fields_of(record)
        if not fields:
            return line
        return f"{line} [{' '.join(f'{name}={_shown(value)}' for name, value in fields.items())}]"


class JsonFormatter(logging.Formatter):
    """A line for programs: one JSON object, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """The object."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        said: dict[str, object] = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return _json(said)


class ChildFormatter(logging.Formatter):
    """A line by which the process of an engine hands a record over to the sidecar that reads it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; what is too long for one is cut."""
        message, trace = record.getMessage(), None
        if record.exc_info:
            trace = self.formatException(record.exc_info)
        fields = fields_of(record)
        line = _child_line(record, message, fields, trace)
        if len(line) > LONGEST_CHILD_LINE:
            line = _child_line(record, message[:400], fields, trace and trace[-1200:])
        if len(line) > LONGEST_CHILD_LINE:
            line = _child_line(record, message[:200], {}, None)
        return line


def _child_line(record: logging.LogRecord, message: str, fields: Fields, trace: str | None) -> str:
    said = {"level": record.levelno, "message": message, "fields": fields, "trace": trace}
    return f"{CHILD_LINE}{_json(said)}}}"


def _json(value: object) -> str:
    import json

    return json.dumps(value, default=str, separators=(",", ":"))


def _shown(value: object) -> str:
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    return _json(text) if not text or not text.isprintable() or " " in text or "]" in text else text


_FORMATTERS = {"text": TextFormatter, "json": JsonFormatter, CHILD: ChildFormatter}


class StderrHandler(logging.Handler):
    """Writes records to descriptor 2, and drops what the reader at its other end leaves no room for."""

    _torn = False
    """True where the newest line has lost its end, so that the next one has to begin a new one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            from sidecar.secrecy import masked_text

            data = (masked_text(self.format(record)) + "\n").encode("utf-8", "backslashreplace")
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


class Listener(Protocol):
    """Hears of requests that were answered."""

    def heard(self, call: Call, outcome: object, seconds: float) -> None:
        """Take in an answer."""
        ...


class RequestWatch:
    """Hears of every request; see `sidecar.rpc.dispatch.Observer`."""

    def __init__(self) -> None:
        self.shadow: Listener | None = None
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
