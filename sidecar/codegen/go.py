"""Emits the Go client's types, methods and error codes."""

from collections.abc import Iterator

from sidecar.codegen.model import (
    Boolean,
    Choice,
    Listing,
    Member,
    NamedType,
    NamedValue,
    Number,
    OneOf,
    Opaque,
    ProtocolModel,
    Ref,
    Shape,
    Text,
)
from sidecar.protocol.methods import Method

_NOTICE = "// Code generated from sidecar/protocol by `make schema`; DO NOT EDIT."
_WIDTH = 100
_INITIALISMS = {"Id": "ID", "Ids": "IDs", "Ms": "MS", "Uri": "URI"}
_OWN = frozenset(("initialize", "shutdown", "context/assemble"))
"""Requests that the client implements by hand."""


def emit_go(model: ProtocolModel) -> str:
    """The text of `protocol.go`: every wire type, a method for every request, every error code."""
    blocks = [
        _NOTICE,
        "package contextsidecar",
        'import (\n\t"context"\n\t"encoding/json"\n\t"time"\n)',
        _documented("ProtocolVersion is the newest version of the protocol that these types describe.")
        + f'const ProtocolVersion = "{model.versions[-1].name}"',
        *(_value(value) for value in model.values.values()),
        *(_struct(named, model) for named in model.types.values()),
    ]
    requests = [each for each in model.methods if each.kind == "request" and each.direction == "hostToServer"]
    blocks += [_call(method) for method in requests if method.name not in _OWN]
    rows = "".join(
        f'\tcase "{method.name}":\n\t\treturn new({method.result})\n' for method in requests if method.result
    )
    doc = _documented("NewResult returns a pointer to decode the result of a request into, or nil for none.")
    blocks.append(
        doc + f"func NewResult(method string) any {{\n\tswitch method {{\n{rows}\t}}\n\treturn nil\n}}"
    )
    for entry in model.errors:
        doc = _documented(f"Code{entry.name}: {entry.when} Its data is {entry.data.__name__}.")
        blocks.append(f"{doc}const Code{entry.name} = {entry.code}")
    return "\n\n".join(blocks) + "\n"


def _value(value: NamedValue) -> str:
    name = _exported(value.name)
    doc = _documented(f"{name}: {value.doc}")
    match value.shape:
        case Choice():
            return doc + "\n".join(_choice(name, value.shape))
        case Opaque():
            return f"{doc}type {name} = json.RawMessage"
        case OneOf():
            return f"{doc}type {name} = any"
        case _:
            return f"{doc}type {name} = {_type(value.shape)}"


def _choice(name: str, shape: Choice) -> Iterator[str]:
    numbers = isinstance(shape.values[0], int)
    yield f"type {name} {'int' if numbers else 'string'}"
    if numbers:
        return
    yield ""
    yield _documented(f"Values of {name} that this version knows.").rstrip("\n")
    yield "const ("
    names = [name + _words(str(value)) for value in shape.values]
    width = max(map(len, names))
    for each, value in zip(names, shape.values, strict=True):
        yield f'\t{each:<{width}} {name} = "{value}"'
    yield ")"


def _struct(named: NamedType, model: ProtocolModel) -> str:
    notes = [f"{named.name}: {named.doc}"]
    if named.exactly_one:
        notes.append(f"Exactly one of {', '.join(map(_exported, named.exactly_one))} is present.")
    if named.at_least_one:
        notes.append(f"At least one of {', '.join(map(_exported, named.at_least_one))} is present.")
    doc = _documented(" ".join(notes))
    if not named.members:
        return f"{doc}type {named.name} struct{{}}"
    fields = "\n".join(_field(member, model) for member in named.members)
    return f"{doc}type {named.name} struct {{\n{fields}}}"


def _field(member: Member, model: ProtocolModel) -> str:
    doc = member.doc
    if member.default is not None:
        doc += f" Absent means {member.default}."
    kind, tag = _type(member.shape), member.name
    if not member.required:
        shape = member.shape
        value = model.values.get(shape.name) if isinstance(shape, Ref) else None
        plain = value is not None or isinstance(shape, Listing | Opaque | OneOf | Text | Choice)
        if not plain and not (isinstance(shape, Number) and (shape.minimum or 0) >= 1):
            kind = f"*{kind}"
        is_time = _type(value.shape if value else shape) == "time.Time"
        tag += ",omitzero" if isinstance(shape, Listing) or is_time else ",omitempty"
    return _documented(doc, "\t") + f'\t{_exported(member.name)} {kind} `json:"{tag}"`\n'


def _type(shape: Shape) -> str:
    match shape:
        case Ref():
            return _exported(shape.name)
        case Listing(item=OneOf(options=options)):
            return f"[]*{_type(options[0])}"
        case Listing():
            return f"[]{_type(shape.item)}"
        case Text():
            return "time.Time" if shape.format == "date-time" else "string"
        case Number():
            return "int64" if shape.integer else "float64"
        case Boolean():
            return "bool"
        case Choice():
            return "string"
        case Opaque():
            return "json.RawMessage"
        case _:
            return "any"


def _call(method: Method) -> str:
    name = _words(method.name)
    doc = _documented(f"{name} sends `{method.name}`. {method.summary}")
    takes, gives = f"ctx context.Context, params *{method.params}", f"*{method.result}, error"
    return doc + (
        f"func (c *Client) {name}({takes}) ({gives}) {{\n"
        f"\tresult := new({method.result})\n"
        f'\terr := c.Request(ctx, "{method.name}", params, result)\n'
        "\tif err != nil {\n\t\treturn nil, err\n\t}\n"
        "\treturn result, nil\n}"
    )


def _words(text: str) -> str:
    """A name built from the words of a value, such as `PerMessage` from `per-message`."""
    parts = text.replace("/", " ").replace("-", " ").replace("_", " ").split()
    return "".join(part[0].upper() + part[1:] for part in parts)


def _exported(name: str) -> str:
    """An exported Go name, with a capital first letter and initialisms in capitals."""
    words: list[str] = []
    for letter in name:
        if letter.isupper() or not words:
            words.append(letter.upper())
        else:
            words[-1] += letter
    return "".join(_INITIALISMS.get(word, word) for word in words)


def _documented(text: str, indent: str = "") -> str:
    lines: list[str] = []
    for word in text.split(" "):
        if lines and len(lines[-1]) + 1 + len(word) <= _WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "".join(f"{indent}// {line}\n" for line in lines)
