"""Writes `protocol.json`: the methods linked to their types, errors and envelope."""

import json

from sidecar.codegen.emitters.schema import HEADER
from sidecar.codegen.model import Json, ProtocolModel
from sidecar.protocol.errors import ErrorEntry
from sidecar.protocol.methods import Method


def emit_protocol(model: ProtocolModel) -> str:
    """The text of `protocol.json`."""
    document: dict[str, Json] = {
        "$comment": HEADER,
        "name": "Context Engine Protocol",
        "versions": [{"name": version.name, "summary": version.summary} for version in model.versions],
        "schema": "schema.json",
        "envelope": {
            "jsonrpc": "2.0",
            "framings": ["content-length", "newline"],
            "request": "Request",
            "notification": "Notification",
            "response": "Response",
            "error": "ErrorResponse",
        },
        "messageFormats": list[Json](model.message_formats),
        "hostCapabilities": list[Json](model.host_capabilities),
        "commonErrors": list[Json](model.common_errors),
        "methods": [_method(method) for method in model.methods],
        "errors": [_error(entry) for entry in model.errors],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _method(method: Method) -> Json:
    line: dict[str, Json] = {
        "name": method.name,
        "direction": method.direction,
        "kind": method.kind,
        "params": method.params,
    }
    if method.kind == "request":
        line["result"] = method.result
        line["errors"] = list[Json](method.errors)
    if method.capability is not None:
        line["capability"] = method.capability
    if method.is_core:
        line["core"] = True
    return {**line, "since": method.since, "summary": method.summary}


def _error(entry: ErrorEntry) -> Json:
    return {
        "code": entry.code,
        "name": entry.name,
        "data": entry.data.__name__,
        "retryable": entry.retryable,
        "when": entry.when,
        "hint": entry.hint,
    }
