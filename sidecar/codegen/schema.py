"""Emits `schema.json` and `protocol.json`.

`schema.json` is a JSON Schema 2020-12 of every type and of the envelope; `protocol.json` links methods to
types, errors and envelope. The schema uses only features that type generators agree on: named definitions
with one `type` each, and optional members that are absent and never `null`. Rules that would need `anyOf`,
`not` or `if` are given in descriptions and in members that start with `x-`.
"""

import json
from collections.abc import Mapping

from sidecar.codegen.model import (
    Boolean,
    Choice,
    Json,
    Listing,
    Member,
    NamedType,
    NamedValue,
    Null,
    Number,
    OneOf,
    Opaque,
    ProtocolModel,
    Ref,
    Shape,
    Text,
)
from sidecar.protocol.errors import ErrorEntry
from sidecar.protocol.methods import Method

HEADER = "Generated from sidecar/protocol by `make schema`; do not edit."

_SIDES = {"hostToServer": "server", "serverToHost": "host", "both": "both"}


def emit_schema(model: ProtocolModel) -> str:
    """The text of `schema.json`."""
    definitions: dict[str, Json] = dict(_envelope())
    values: dict[str, Json] = {name: _value(value) for name, value in model.values.items()}
    types: dict[str, Json] = {name: _object(named, model) for name, named in model.types.items()}
    named = {**values, **types}
    document: dict[str, Json] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": f"{HEADER} README.md explains the members that start with x-.",
        "title": "Context Engine Protocol",
        "description": "Any message of the protocol; the types are under $defs.",
        "$ref": "#/$defs/Envelope",
        "$defs": {**definitions, **{name: named[name] for name in sorted(named)}},
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _envelope() -> dict[str, Json]:
    """Definitions of the JSON-RPC messages themselves, by name."""
    version: Json = {"type": "string", "const": "2.0"}
    params: Json = {"description": "Params are by name only.", "type": "object"}
    method: Json = {"type": "string"}
    return {
        "Envelope": {
            "title": "Envelope",
            "description": "Any message of the protocol.",
            "anyOf": [_ref(name) for name in ("Request", "Notification", "Response", "ErrorResponse")],
        },
        "Request": {
            "title": "Request",
            "description": "Has both `id` and `method`.",
            "type": "object",
            "properties": {"jsonrpc": version, "id": _ref("RequestId"), "method": method, "params": params},
            "required": ["jsonrpc", "id", "method"],
        },
        "Notification": {
            "title": "Notification",
            "description": "Has `method` and no `id`.",
            "type": "object",
            "properties": {"jsonrpc": version, "method": method, "params": params},
            "required": ["jsonrpc", "method"],
        },
        "Response": {
            "title": "Response",
            "description": "Has `id` and `result`, and no `error`; some results are `null`.",
            "type": "object",
            "properties": {"jsonrpc": version, "id": _ref("RequestId"), "result": {}},
            "required": ["jsonrpc", "id", "result"],
        },
        "ErrorResponse": {
            "title": "ErrorResponse",
            "description": "Has `id` and `error`, and no `result`.",
            "type": "object",
            "properties": {
                "jsonrpc": version,
                "id": {
                    "description": "null if the request could not be identified.",
                    "type": ["integer", "string", "null"],
                },
                "error": _ref("ResponseError"),
            },
            "required": ["jsonrpc", "id", "error"],
        },
        "ResponseError": {
            "title": "ResponseError",
            "description": "An error sent by either side; the server sends a ServerError.",
            "type": "object",
            "properties": {
                "code": {"type": "integer", "format": "int32"},
                "message": {"type": "string"},
                "data": {"description": "Any JSON."},
            },
            "required": ["code", "message"],
        },
        "ServerError": {
            "title": "ServerError",
            "description": "An error sent by the server. Its `data` has the members of ErrorData, and those "
            "of the definition that lists its code in `x-error-codes`.",
            "type": "object",
            "properties": {
                "code": {"type": "integer", "format": "int32"},
                "message": {"type": "string"},
                "data": {"description": "Has at least the members of ErrorData.", "type": "object"},
            },
            "required": ["code", "message", "data"],
        },
    }


def _ref(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


def _object(named: NamedType, model: ProtocolModel) -> Json:
    """The schema of a named type."""
    schema: dict[str, Json] = {"title": named.name, "description": named.doc}
    for method in model.methods:
        if named.name in (method.params, method.result):
            schema |= _place(method)
    if codes := [entry.code for entry in model.errors if entry.data.__name__ == named.name]:
        schema["x-error-codes"] = list[Json](codes)
    schema["type"] = "object"
    schema["properties"] = {member.name: _member(member) for member in named.members}
    if required := [member.name for member in named.members if member.required]:
        schema["required"] = list[Json](required)
    if named.exactly_one:
        schema["x-exactly-one"] = list[Json](named.exactly_one)
    if named.at_least_one:
        schema["x-at-least-one"] = list[Json](named.at_least_one)
    return schema


def _place(method: Method) -> dict[str, Json]:
    """The method that a type belongs to, and the side that handles the method."""
    return {"x-method": method.name, "x-side": _SIDES[method.direction]}


def _value(value: NamedValue) -> Json:
    """The schema of a named value."""
    return {"title": value.name, "description": value.doc, **_schema(value.shape)}


def _member(member: Member) -> Json:
    schema = _schema(member.shape)
    if member.means_null:
        schema["type"] = [schema["type"], "null"]
    if member.default is not None:
        schema["default"] = member.default
    return {"description": member.doc, **schema}


def _schema(shape: Shape) -> dict[str, Json]:
    match shape:
        case Ref():
            return {"$ref": f"#/$defs/{shape.name}"}
        case Choice():
            return _choice(shape)
        case Listing():
            return {"type": "array", "items": _schema(shape.item)}
        case OneOf():
            return _union(shape)
        case Opaque():
            return {"type": "object"} if shape.is_object else {}
        case _:
            return _scalar(shape)


def _scalar(shape: Text | Number | Boolean | Null) -> dict[str, Json]:
    match shape:
        case Text():
            lengths = _given({"minLength": shape.min_length, "maxLength": shape.max_length})
            return {"type": "string", **lengths, **_given({"pattern": shape.pattern, "format": shape.format})}
        case Number(integer=True):
            bounds = _given({"minimum": shape.minimum, "maximum": shape.maximum})
            return {"type": "integer", "format": "int64", **bounds}
        case Number():
            bounds = _given({"minimum": shape.minimum, "maximum": shape.maximum})
            return {"type": "number", "format": "double", **bounds}
        case Boolean():
            return {"type": "boolean"}
        case Null():
            return {"type": "null"}


def _choice(shape: Choice) -> dict[str, Json]:
    """An enumeration; an open one lists its known values, but accepts every value of its type."""
    kind: dict[str, Json] = (
        {"type": "string"} if isinstance(shape.values[0], str) else {"type": "integer", "format": "int32"}
    )
    if shape.is_open:
        return {**kind, "x-open": True, "x-known-values": list[Json](shape.values)}
    return {**kind, "enum": list[Json](shape.values)}


def _union(shape: OneOf) -> dict[str, Json]:
    """A union: with `null` as a list of types, otherwise as `anyOf`, which generators handle best."""
    others = [_schema(option) for option in shape.options if not isinstance(option, Null)]
    if len(others) == 1:
        return {**others[0], "type": [others[0]["type"], "null"]}
    return {"anyOf": list[Json](others)}


def _given(parts: Mapping[str, int | float | str | None]) -> dict[str, Json]:
    return {key: value for key, value in parts.items() if value is not None}


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
        "methods": [_method_entry(method) for method in model.methods],
        "errors": [_error_entry(entry) for entry in model.errors],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _method_entry(method: Method) -> Json:
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


def _error_entry(entry: ErrorEntry) -> Json:
    return {
        "code": entry.code,
        "name": entry.name,
        "data": entry.data.__name__,
        "retryable": entry.retryable,
        "when": entry.when,
        "hint": entry.hint,
    }
