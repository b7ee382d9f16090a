"""Emits the TypeScript client's types, method tables and error codes."""

import json
from collections.abc import Sequence

from sidecar.codegen.model import (
    Boolean,
    Choice,
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
from sidecar.protocol.methods import Method

_NOTICE = "// Generated from sidecar/protocol by `make schema`; do not edit."
_WIDTH = 108

_ANY_OTHER: dict[type, str] = {str: "(string & {})", int: "(number & {})"}
"""Type for unknown values of an open enumeration, written so that editors still suggest the known ones."""

_TABLES = (
    ("HostRequests", "request", "hostToServer", "Requests that the host sends."),
    ("HostNotifications", "notification", "hostToServer", "Notifications that the host sends."),
    ("ServerRequests", "request", "serverToHost", "Requests that the server sends and the host answers."),
    ("ServerNotifications", "notification", "serverToHost", "Notifications that the server sends."),
)


def emit_typescript_types(model: ProtocolModel) -> str:
    """The text of `types.ts`: every wire type."""
    blocks = [
        _NOTICE,
        _documented("A JSON object whose members the protocol does not define.", "")
        + "export type JsonObject = { [member: string]: unknown };",
        *(_value(value) for value in model.values.values()),
        *(_interface(named) for named in model.types.values()),
    ]
    return "\n\n".join(blocks) + "\n"


def emit_typescript_methods(model: ProtocolModel) -> str:
    """The text of `methods.ts`: params and result of every method, by name."""
    used = sorted(
        {name for method in model.methods for name in (method.params, method.result) if name is not None}
    )
    blocks = [
        _NOTICE,
        "import type {\n" + "".join(f"  {name},\n" for name in used) + '} from "./types.js";',
    ]
    for name, kind, direction, doc in _TABLES:
        rows = [
            method
            for method in model.methods
            if method.kind == kind and method.direction in (direction, "both")
        ]
        body = "".join(_row(method) for method in rows)
        blocks.append(_documented(doc, "") + f"export interface {name} {{\n{body}}}")
    blocks.append(
        _documented("The newest version of the protocol that these types describe.", "")
        + f"export const PROTOCOL_VERSION = {json.dumps(model.versions[-1].name)};"
    )
    return "\n\n".join(blocks) + "\n"


def emit_typescript_errors(model: ProtocolModel) -> str:
    """The text of `errors.ts`: the code of every error and the type of its data."""
    data = sorted({entry.data.__name__ for entry in model.errors})
    codes = "".join(
        _documented(entry.when, "  ") + f"  {entry.name}: {entry.code},\n" for entry in model.errors
    )
    types = "".join(f"  [{entry.code}]: {entry.data.__name__};\n" for entry in model.errors)
    blocks = [
        _NOTICE,
        "import type {\n" + "".join(f"  {name},\n" for name in data) + '} from "./types.js";',
        _documented("The code of every error of the protocol.", "")
        + f"export const ErrorCode = {{\n{codes}}} as const;",
        _documented("The `data` type of every error, by code.", "")
        + f"export interface ErrorDataByCode {{\n{types}}}",
    ]
    return "\n\n".join(blocks) + "\n"


def _row(method: Method) -> str:
    key = json.dumps(method.name)
    if method.kind == "notification":
        return _documented(method.summary, "  ") + f"  {key}: {method.params};\n"
    result = method.result or "null"
    return _documented(method.summary, "  ") + f"  {key}: {{ params: {method.params}; result: {result} }};\n"


def _value(value: NamedValue) -> str:
    if value.name == "Message":
        members = "  readonly role?: unknown;\n  readonly type?: unknown;\n"
        return _documented(value.doc, "") + f"export interface Message {{\n{members}}}"
    return _documented(value.doc, "") + f"export type {value.name} = {_type(value.shape)};"


def _interface(named: NamedType) -> str:
    notes = [named.doc]
    if named.exactly_one:
        notes.append(f"Exactly one of {_names(named.exactly_one)} must be there.")
    if named.at_least_one:
        notes.append(f"At least one of {_names(named.at_least_one)} must be there.")
    body = "".join(_member(member) for member in named.members)
    return _documented(" ".join(notes), "") + (
        f"export interface {named.name} {{\n{body}}}"
        if body
        else f"export type {named.name} = Record<string, never>;"
    )


def _member(member: Member) -> str:
    words = _type(member.shape)
    optional = "" if member.required else "?"
    if not member.required and words != "unknown":
        words += " | null | undefined"
    doc = member.doc
    if member.default is not None:
        doc += f" Absent means `{json.dumps(member.default)}`."
    return _documented(doc, "  ") + f"  {_key(member.name)}{optional}: {words};\n"


def _type(shape: Shape) -> str:
    match shape:
        case Ref():
            return shape.name
        case Listing():
            item = _type(shape.item)
            return f"readonly ({item})[]" if " | " in item else f"readonly {item}[]"
        case OneOf():
            return " | ".join(dict.fromkeys(_type(option) for option in shape.options))
        case Choice():
            words = " | ".join(json.dumps(value) for value in shape.values)
            return f"{words} | {_ANY_OTHER[type(shape.values[0])]}" if shape.is_open else words
        case Opaque():
            return "JsonObject" if shape.is_object else "unknown"
        case _:
            return _scalar(shape)


def _scalar(shape: Text | Number | Boolean | Null) -> str:
    match shape:
        case Text():
            return "string"
        case Number():
            return "number"
        case Boolean():
            return "boolean"
        case Null():
            return "null"


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _documented(text: str, indent: str) -> str:
    """A doc comment, wrapped as needed, with a final line break."""
    if len(indent) + len(text) + 7 <= _WIDTH:
        return f"{indent}/** {text} */\n"
    lines: list[str] = []
    for word in text.split(" "):
        if lines and len(indent) + 3 + len(lines[-1]) + 1 + len(word) <= _WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return f"{indent}/**\n" + "".join(f"{indent} * {line}\n" for line in lines) + f"{indent} */\n"
