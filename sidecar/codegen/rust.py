"""Emits the Rust client's types, methods and error codes."""

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
_WIDTH = 96
_OWN = frozenset(("initialize", "shutdown", "context/assemble"))
"""Requests that the client implements by hand."""


def emit_rust(model: ProtocolModel) -> str:
    """The text of `protocol.rs`: every wire type, a method for every request, every error code."""
    requests = [each for each in model.methods if each.kind == "request" and each.direction == "hostToServer"]
    blocks = [
        _NOTICE,
        "//! The types of the Context Engine Protocol, and a method of [`Client`] for each request.",
        "use crate::{enumeration::open_enumeration, Client, Error};\n"
        "use serde::{Deserialize, Serialize};\nuse serde_json::value::RawValue;",
        _documented("The newest version of the protocol that these types describe.")
        + f'pub const PROTOCOL_VERSION: &str = "{model.versions[-1].name}";',
        *(_value(value) for value in model.values.values()),
        *(_struct(named) for named in model.types.values()),
        "impl Client {\n" + "\n".join(_call(method) for method in requests if method.name not in _OWN) + "}",
    ]
    for entry in model.errors:
        doc = _documented(f"{entry.when} Its data is [`{entry.data.__name__}`].")
        blocks.append(f"{doc}pub const {_constant(entry.name)}: i64 = {entry.code};")
    return "\n\n".join(blocks) + "\n"


def _value(value: NamedValue) -> str:
    doc = _documented(value.doc)
    match value.shape:
        case Choice(values=(str(), *_)):
            rows = "".join(f'        {_camel(str(each))} = "{each}",\n' for each in value.shape.values)
            inner = _documented(value.doc, "    ")
            return f"open_enumeration! {{\n{inner}    {value.name} {{\n{rows}    }}\n}}"
        case _:
            return f"{doc}pub type {value.name} = {_type(value.shape)};"


def _struct(named: NamedType) -> str:
    notes = [named.doc]
    for words, names in (("Exactly", named.exactly_one), ("At least", named.at_least_one)):
        if names:
            notes.append(f"{words} one of {', '.join(f'`{_snake(name)}`' for name in names)} is present.")
    doc = _documented(" ".join(notes))
    derived = ["Clone", "Debug", "Deserialize", "Serialize"]
    if all(not member.required or _has_default(member.shape) for member in named.members):
        derived.insert(2, "Default")
    head = f'{doc}#[derive({", ".join(derived)})]\n#[serde(rename_all = "camelCase")]\n'
    if not named.members:
        return f"{head}pub struct {named.name} {{}}"
    return f"{head}pub struct {named.name} {{\n{''.join(map(_field, named.members))}}}"


def _field(member: Member) -> str:
    name, kind = _snake(member.name), _type(member.shape)
    doc = member.doc if member.default is None else f"{member.doc} Absent means `{member.default}`."
    lines = _documented(doc, "    ")
    if not member.required:
        kind = f"Option<{kind}>"
        lines += '    #[serde(default, skip_serializing_if = "Option::is_none")]\n'
    if _wire(name) != member.name:
        lines += f'    #[serde(rename = "{member.name}")]\n'
    return f"{lines}    pub {'r#' if name == 'type' else ''}{name}: {kind},\n"


def _has_default(shape: Shape) -> bool:
    return isinstance(shape, Text | Number | Boolean | Listing) or (
        isinstance(shape, Ref) and shape.name in ("SessionId", "SessionKey", "AgentId", "MessageId", "TurnId")
    )


def _type(shape: Shape) -> str:
    match shape:
        case Ref():
            return shape.name
        case Listing():
            return f"Vec<{_type(shape.item)}>"
        case Text() | Choice(values=(str(), *_)):
            return "String"
        case Number():
            return "i64" if shape.integer else "f64"
        case Choice():
            return "i64"
        case Boolean():
            return "bool"
        case Opaque(is_object=True):
            return "Box<RawValue>"
        case OneOf(options=(first, Null())):
            return f"Option<{_type(first)}>"
        case _:
            return "serde_json::Value"


def _call(method: Method) -> str:
    doc = _documented(f"Sends `{method.name}`. {method.summary}", "    ")
    name = _snake("".join(map(_camel, method.name.split("/"))))
    return (
        f"{doc}    pub async fn {name}(\n        &self,\n        params: &{method.params},\n"
        f"    ) -> Result<{method.result}, Error> {{\n"
        f'        self.request("{method.name}", params).await\n    }}\n'
    )


def _camel(text: str) -> str:
    """A name built from the words of a value, such as `PerMessage` from `per-message`."""
    parts = text.replace("/", " ").replace("-", " ").replace("_", " ").split()
    return "".join(part[0].upper() + part[1:] for part in parts)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _wire(name: str) -> str:
    """The wire name that serde derives from a field name."""
    first, *rest = name.split("_")
    return first + "".join(part[0].upper() + part[1:] for part in rest)


def _constant(name: str) -> str:
    return _snake(name).upper()


def _documented(text: str, indent: str = "") -> str:
    lines: list[str] = []
    for word in text.split(" "):
        if lines and len(indent) + 4 + len(lines[-1]) + 1 + len(word) <= _WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "".join(f"{indent}/// {line}\n" for line in lines)
