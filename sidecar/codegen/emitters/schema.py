"""Writes `schema.json`: JSON Schema 2020-12 of every type and of the envelope."""

import json
from collections.abc import Mapping

from sidecar.codegen.model import (
    Boolean,
    Choice,
    Json,
    Listing,
    Member,
    NamedType,
    Null,
    Number,
    OneOf,
    Opaque,
    ProtocolModel,
    Ref,
    Shape,
    Text,
)
from sidecar.protocol.errors import ErrorData

HEADER = "Generated from sidecar/protocol by `make schema`; do not edit."


def emit_schema(model: ProtocolModel) -> str:
    """The text of `schema.json`."""
    definitions: dict[str, Json] = dict(envelope(model))
    for name in sorted(model.types):
        definitions[name] = object_schema(model.types[name])
    document: dict[str, Json] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": HEADER,
        "title": "Context Engine Protocol",
        "description": "Any message of the protocol; the types are under $defs.",
        "$ref": "#/$defs/Message",
        "$defs": definitions,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def envelope(model: ProtocolModel) -> dict[str, Json]:
    """Definitions of the JSON-RPC messages themselves, by name."""
    version: Json = {"const": "2.0"}
    return {
        "Message": {
            "anyOf": [_ref(name) for name in ("Request", "Notification", "Response", "ErrorResponse")]
        },
        "RequestId": {
            "description": "Chosen by the sender; unique among its requests in flight.",
            "type": ["integer", "string"],
        },
        "Params": {"description": "Params are by name only; null means none.", "type": ["object", "null"]},
        "Request": {
            "type": "object",
            "properties": {
                "jsonrpc": version,
                "id": _ref("RequestId"),
                "method": {"type": "string"},
                "params": _ref("Params"),
            },
            "required": ["jsonrpc", "id", "method"],
        },
        "Notification": {
            "type": "object",
            "properties": {"jsonrpc": version, "method": {"type": "string"}, "params": _ref("Params")},
            "required": ["jsonrpc", "method"],
            "not": {"required": ["id"]},
        },
        "Response": {
            "type": "object",
            "properties": {"jsonrpc": version, "id": _ref("RequestId"), "result": True},
            "required": ["jsonrpc", "id", "result"],
            "not": {"required": ["error"]},
        },
        "ErrorResponse": {
            "type": "object",
            "properties": {
                "jsonrpc": version,
                "id": {
                    "description": "null where the request could not be told.",
                    "type": ["integer", "string", "null"],
                },
                "error": _ref("ResponseError"),
            },
            "required": ["jsonrpc", "id", "error"],
            "not": {"required": ["result"]},
        },
        "ResponseError": {
            "type": "object",
            "properties": {
                "code": {"type": "integer"},
                "message": {"type": "string"},
                "data": {"description": "Any JSON; errors of the server are a ServerError."},
            },
            "required": ["code", "message"],
        },
        "ServerError": {
            "description": "An error that the server sends: `data` depends on `code`.",
            "allOf": [_ref("ResponseError"), *_error_branches(model)],
            "properties": {"data": _ref("ErrorData")},
            "required": ["data"],
        },
    }


def _error_branches(model: ProtocolModel) -> list[Json]:
    return [
        {
            "if": {"properties": {"code": {"const": entry.code}}},
            "then": {"properties": {"data": _ref(entry.data.__name__)}},
        }
        for entry in model.errors
        if entry.data is not ErrorData
    ]


def _ref(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


def object_schema(named: NamedType) -> Json:
    """The schema of a named type."""
    schema: dict[str, Json] = {"description": named.doc, "type": "object"}
    schema["properties"] = {member.name: member_schema(member) for member in named.members}
    if required := [member.name for member in named.members if member.required]:
        schema["required"] = list[Json](required)
    if named.exactly_one:
        schema["oneOf"] = [_present(name) for name in named.exactly_one]
    if named.at_least_one:
        schema["anyOf"] = [_present(name) for name in named.at_least_one]
    return schema


def _present(name: str) -> Json:
    return {"properties": {name: {"not": {"type": "null"}}}, "required": [name]}


def member_schema(member: Member) -> Json:
    """The schema of one member, which may be `null` where it is not required."""
    schema = dict(_schema(member.shape) if member.required else _nullable(member.shape))
    if member.default is not None:
        schema["default"] = member.default
    return {"description": member.doc, **schema}


def _nullable(shape: Shape) -> dict[str, Json]:
    """A schema that lets `null` stand for an absent member."""
    if isinstance(shape, OneOf):
        return _schema(OneOf((*shape.options, Null())))
    schema = _schema(shape)
    if isinstance(shape, Opaque) and not shape.is_object:
        return schema
    if "type" in schema and "enum" not in schema and "anyOf" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _schema(shape: Shape) -> dict[str, Json]:
    match shape:
        case Text():
            named = {"minLength": shape.min_length, "maxLength": shape.max_length}
            return {
                "type": "string",
                **_given(named),
                **_given({"pattern": shape.pattern, "format": shape.format}),
            }
        case Number():
            bounds = _given({"minimum": shape.minimum, "maximum": shape.maximum})
            return {"type": "integer" if shape.integer else "number", **bounds}
        case Boolean():
            return {"type": "boolean"}
        case Null():
            return {"type": "null"}
        case Choice():
            return {"enum": list[Json](shape.values)}
        case Listing():
            return {"type": "array", "items": _schema(shape.item)}
        case OneOf():
            return {"anyOf": [_schema(option) for option in shape.options]}
        case Ref():
            return {"$ref": f"#/$defs/{shape.name}"}
        case Opaque():
            return _opaque(shape)


def _opaque(shape: Opaque) -> dict[str, Json]:
    if not shape.is_object:
        return {}
    if not shape.any_of_required:
        return {"type": "object"}
    branches: list[Json] = [{"required": [name]} for name in shape.any_of_required]
    return {"type": "object", "anyOf": branches}


def _given(parts: Mapping[str, int | float | str | None]) -> dict[str, Json]:
    return {key: value for key, value in parts.items() if value is not None}
