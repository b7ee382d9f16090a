"""Writes `openrpc.json`: the methods as an OpenRPC document, for tools that read those."""

import json

from sidecar.codegen.emitters.schema import HEADER, member_schema, object_schema
from sidecar.codegen.model import Json, ProtocolModel
from sidecar.protocol.errors import ErrorEntry
from sidecar.protocol.methods import Method

_OPENRPC = "1.3.2"
_OURS = "#/$defs/"
_THEIRS = "#/components/schemas/"


def emit_openrpc(model: ProtocolModel) -> str:
    """The text of `openrpc.json`."""
    schemas: dict[str, Json] = {name: object_schema(model.types[name]) for name in sorted(model.types)}
    document: dict[str, Json] = {
        "openrpc": _OPENRPC,
        "info": {
            "title": "Context Engine Protocol",
            "version": model.versions[-1].name,
            "description": f"{HEADER} Members that begin with x- are beyond OpenRPC.",
        },
        "methods": [_method(method, model) for method in model.methods],
        "components": {"schemas": schemas, "errors": {e.name: _error(e) for e in model.errors}},
    }
    return json.dumps(_moved(document), indent=2, ensure_ascii=False) + "\n"


def _method(method: Method, model: ProtocolModel) -> Json:
    line: dict[str, Json] = {
        "name": method.name,
        "summary": method.summary,
        "x-direction": method.direction,
        "paramStructure": "by-name",
        "params": [
            {
                "name": member.name,
                "summary": member.doc,
                "required": member.required,
                "schema": member_schema(member),
            }
            for member in model.types[method.params].members
        ],
    }
    if method.capability is not None:
        line["x-capability"] = method.capability
    if method.kind == "notification":
        return line
    result: Json = {"type": "null"} if method.result is None else {"$ref": f"{_OURS}{method.result}"}
    named = () if method.direction == "serverToHost" else (*model.common_errors, *method.errors)
    errors: list[Json] = [{"$ref": f"#/components/errors/{name}"} for name in dict.fromkeys(named)]
    return {**line, "result": {"name": method.result or "null", "schema": result}, "errors": errors}


def _error(entry: ErrorEntry) -> Json:
    return {
        "code": entry.code,
        "message": entry.when,
        "data": {"retryable": entry.retryable, "hint": entry.hint},
    }


def _moved(value: Json) -> Json:
    """The value with references to where OpenRPC keeps its schemas."""
    if isinstance(value, dict):
        return {
            key: item.replace(_OURS, _THEIRS) if key == "$ref" and isinstance(item, str) else _moved(item)
            for key, item in value.items()
        }
    return [_moved(item) for item in value] if isinstance(value, list) else value
