"""Reads the Structs and tables of `sidecar.protocol` into a `ProtocolModel`."""

from typing import get_args

from msgspec import NODEFAULT, Struct, convert, inspect

from sidecar.codegen.docstrings import field_docs, type_docs
from sidecar.codegen.model import (
    Boolean,
    Choice,
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
from sidecar.protocol.base import MessageFormat, Wire
from sidecar.protocol.errors import ERRORS
from sidecar.protocol.initialize import HostCapability
from sidecar.protocol.lifecycle import WorkDoneProgressBegin, WorkDoneProgressEnd, WorkDoneProgressReport
from sidecar.protocol.methods import COMMON_ERRORS, METHODS
from sidecar.protocol.versions import VERSIONS

_UNLINKED = (WorkDoneProgressBegin, WorkDoneProgressReport, WorkDoneProgressEnd)
"""Types that travel inside an opaque member, so that no method leads to them."""


class UnsupportedType(TypeError):
    """Raised when a Struct uses a type that the model has no word for."""


class Alternative(Struct):
    """One branch of `anyOf` in an `extra_json_schema`."""

    required: list[str]


class Extra(Struct):
    """The parts of an `extra_json_schema` that the model has a word for."""

    type: str | None = None
    format: str | None = None
    anyOf: list[Alternative] = []

    @classmethod
    def read(cls, node: inspect.Metadata) -> "Extra":
        """The parts that an annotation has; all empty where it has none."""
        schema: object = getattr(node, "extra_json_schema", None)
        return convert(schema or {}, cls)


def read_protocol() -> ProtocolModel:
    """The protocol as it stands in the source.

    Raises:
        MissingDocstring: a type or a field is not documented.
        UnsupportedType: a field has a type that cannot be put into words.
    """
    types: dict[str, NamedType] = {}
    for method in METHODS:
        _collect(method.load(method.params), types)
        if method.result is not None:
            _collect(method.load(method.result), types)
    for struct in (*_UNLINKED, *(entry.data for entry in ERRORS)):
        _collect(struct, types)
    return ProtocolModel(
        types=types,
        methods=METHODS,
        errors=ERRORS,
        common_errors=COMMON_ERRORS,
        versions=VERSIONS,
        host_capabilities=get_args(HostCapability),
        message_formats=get_args(MessageFormat),
    )


def read_type(struct: type[Wire]) -> NamedType:
    """One type on its own, without the types that its members refer to.

    Raises:
        MissingDocstring: the type or a field is not documented.
        UnsupportedType: a field has a type that cannot be put into words.
    """
    return _read(struct, [])


def _collect(struct: type[Wire], types: dict[str, NamedType]) -> None:
    if struct.__name__ in types:
        return
    nested: list[type[Wire]] = []
    types[struct.__name__] = _read(struct, nested)
    for other in nested:
        _collect(other, types)


def _read(struct: type[Wire], nested: list[type[Wire]]) -> NamedType:
    """The type; types that its members refer to are added to `nested`."""
    info = inspect.type_info(struct)
    if not isinstance(info, inspect.StructType):
        raise UnsupportedType(f"{struct.__name__} is no Struct")
    members = [_member(struct, field, nested) for field in info.fields]
    if info.tag_field is not None and isinstance(info.tag, str):
        tag = Member(info.tag_field, Choice((info.tag,)), True, None, "Tells the variants apart.")
        members.insert(0, tag)
    wire = {field.name: field.encode_name for field in info.fields}
    return NamedType(
        name=struct.__name__,
        module=struct.__module__.rpartition(".")[2],
        doc=type_docs(struct),
        members=tuple(members),
        exactly_one=tuple(wire[name] for name in struct.exactly_one),
        at_least_one=tuple(wire[name] for name in struct.at_least_one),
    )


def _member(struct: type[Wire], field: inspect.Field, nested: list[type[Wire]]) -> Member:
    default = field.default if isinstance(field.default, str | int | bool) else None
    return Member(
        name=field.encode_name,
        shape=_without_null(_shape(field.type, nested)) if not field.required else _shape(field.type, nested),
        required=field.required,
        default=None if field.default is NODEFAULT else default,
        doc=field_docs(struct, field.name),
    )


def _without_null(shape: Shape) -> Shape:
    if isinstance(shape, OneOf):
        rest = tuple(option for option in shape.options if not isinstance(option, Null))
        return rest[0] if len(rest) == 1 else OneOf(rest)
    return shape


def _shape(node: inspect.Type, nested: list[type[Wire]]) -> Shape:
    match node:
        case inspect.Metadata():
            return _annotated(_shape(node.type, nested), Extra.read(node))
        case inspect.StrType():
            return Text(node.min_length, node.max_length, node.pattern)
        case inspect.IntType():
            return Number(True, node.ge, node.le)
        case inspect.FloatType():
            return Number(False, node.ge, node.le)
        case inspect.LiteralType():
            return Choice(tuple(value for value in node.values if isinstance(value, str | int)))
        case inspect.ListType():
            return Listing(_shape(node.item_type, nested))
        case inspect.UnionType():
            return OneOf(tuple(_shape(option, nested) for option in node.types))
        case inspect.StructType():
            if not issubclass(node.cls, Wire):
                raise UnsupportedType(f"{node.cls.__name__} does not derive from Wire")
            nested.append(node.cls)
            return Ref(node.cls.__name__)
        case _:
            return _plain(node)


def _plain(node: inspect.Type) -> Shape:
    match node:
        case inspect.BoolType():
            return Boolean()
        case inspect.NoneType():
            return Null()
        case inspect.RawType():
            return Opaque(is_object=False)
        case _:
            raise UnsupportedType(f"{type(node).__name__} has no place in the protocol model")


def _annotated(shape: Shape, extra: "Extra") -> Shape:
    """The shape with what `Meta(extra_json_schema=...)` says about it."""
    if isinstance(shape, Opaque):
        names = tuple(name for branch in extra.anyOf for name in branch.required)
        return Opaque(is_object=extra.type == "object", any_of_required=names)
    if isinstance(shape, Text):
        return shape._replace(format=extra.format)
    return shape
