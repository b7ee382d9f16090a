"""What a line of the log says beside its text: which request, session, engine, how long, which error."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import cast

from sidecar.rpc.call import Call, serving

LONGEST_CHILD_LINE = 3500
"""Bytes of a line that an engine's process writes for the sidecar to log; longer ones are cut."""
CHILD_LINE = '{"childLog":'
"""How such a line begins."""

Fields = Mapping[str, object]


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
