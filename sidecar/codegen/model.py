"""A language-neutral model of the protocol for the emitters, and how it is read from `sidecar.protocol`."""

import ast
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

from msgspec import NODEFAULT, Struct, convert, field, inspect

from sidecar.protocol.base import MessageFormat, Wire
from sidecar.protocol.errors import ERRORS, ErrorEntry
from sidecar.protocol.lifecycle import (
    VERSIONS,
    HostCapability,
    ProtocolVersion,
    WorkDoneProgressBegin,
    WorkDoneProgressEnd,
    WorkDoneProgressReport,
)
from sidecar.protocol.methods import COMMON_ERRORS, METHODS, Method

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
"""Any JSON value."""


class Text(NamedTuple):
    """A string; lengths are in code points."""

    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None


class Number(NamedTuple):
    """A number; an integer if `integer` is set."""

    integer: bool
    minimum: int | float | None = None
    maximum: int | float | None = None


class Boolean(NamedTuple):
    """True or false."""


class Null(NamedTuple):
    """Nothing but `null`."""


class Choice(NamedTuple):
    """One of a list of strings or integers."""

    values: tuple[str | int, ...]
    is_open: bool = False
    """Whether later versions may add values, so that readers must accept unknown ones."""


class Opaque(NamedTuple):
    """JSON that is passed on undecoded."""

    is_object: bool


class Listing(NamedTuple):
    """An array."""

    item: "Shape"


class OneOf(NamedTuple):
    """A value of any one of several shapes."""

    options: tuple["Shape", ...]


class Ref(NamedTuple):
    """A value of a named type."""

    name: str


Shape = Text | Number | Boolean | Null | Choice | Opaque | Listing | OneOf | Ref


class Member(NamedTuple):
    """One member of a named type."""

    name: str
    """The name on the wire."""
    shape: Shape
    """The shape of its value; for optional members, without the `null` that they all accept."""
    required: bool
    means_null: bool
    """Whether `null` has another meaning than an absent member."""
    default: str | int | bool | None
    """The default for an absent member, if any."""
    doc: str


class NamedType(NamedTuple):
    """An object of the protocol."""

    name: str
    module: str
    doc: str
    members: tuple[Member, ...]
    exactly_one: tuple[str, ...]
    """Members exactly one of which must be present."""
    at_least_one: tuple[str, ...]
    """Members at least one of which must be present."""


class NamedValue(NamedTuple):
    """A named string, number or opaque object."""

    name: str
    doc: str
    shape: Shape


class ProtocolModel(NamedTuple):
    """The whole protocol."""

    values: dict[str, NamedValue]
    """By name, in the order in which types first need them."""
    types: dict[str, NamedType]
    """By name, in the order in which methods and errors first need them."""
    methods: tuple[Method, ...]
    errors: tuple[ErrorEntry, ...]
    common_errors: tuple[str, ...]
    versions: tuple[ProtocolVersion, ...]
    host_capabilities: tuple[str, ...]
    message_formats: tuple[str, ...]


_UNLINKED = (WorkDoneProgressBegin, WorkDoneProgressReport, WorkDoneProgressEnd)
"""Types that occur only inside an opaque member, so that no method refers to them."""


class UnsupportedType(TypeError):
    """Raised when a Struct uses a type that the model cannot express."""


class Extra(Struct):
    """The parts of an annotation that the model uses."""

    title: str | None = None
    description: str | None = None
    type: str | None = None
    format: str | None = None
    null_has_meaning: bool = field(name="x-null", default=False)
    known_values: tuple[str | int, ...] = field(name="x-known-values", default=())

    @classmethod
    def read(cls, node: inspect.Metadata) -> "Extra":
        """Read an annotation; parts that it lacks get their defaults."""
        schema: object = getattr(node, "extra_json_schema", None)
        return convert(schema or {}, cls)


def read_protocol() -> ProtocolModel:
    """Read the protocol from its Python types.

    Raises:
        MissingDocstring: a type or a field has no docstring.
        UnsupportedType: a field has a type that the model cannot express.
    """
    reader = _Reader()
    for method in METHODS:
        reader.add(method.load(method.params))
        if method.result is not None:
            reader.add(method.load(method.result))
    for struct in (*_UNLINKED, *(entry.data for entry in ERRORS)):
        reader.add(struct)
    return ProtocolModel(
        values=reader.values,
        types=reader.types,
        methods=METHODS,
        errors=ERRORS,
        common_errors=COMMON_ERRORS,
        versions=VERSIONS,
        host_capabilities=get_args(HostCapability),
        message_formats=get_args(MessageFormat),
    )


def read_type(struct: type[Wire]) -> NamedType:
    """Read one type.

    Raises:
        MissingDocstring: the type or a field has no docstring.
        UnsupportedType: a field has a type that the model cannot express.
    """
    reader = _Reader()
    reader.add(struct)
    return reader.types[struct.__name__]


class _Reader:
    """Collects types with everything they refer to, and named values."""

    def __init__(self) -> None:
        self.types: dict[str, NamedType] = {}
        self.values: dict[str, NamedValue] = {}

    def add(self, struct: type[Wire]) -> None:
        """Read a type and the types that its members refer to."""
        if struct.__name__ in self.types:
            return
        nested: list[type[Wire]] = []
        self.types[struct.__name__] = self._type(struct, nested)
        for other in nested:
            self.add(other)

    def _type(self, struct: type[Wire], nested: list[type[Wire]]) -> NamedType:
        """Read one type; adds the types that its members refer to to `nested`."""
        info = inspect.type_info(struct)
        if not isinstance(info, inspect.StructType):
            raise UnsupportedType(f"{struct.__name__} is not a Struct")
        members = [self._member(struct, each, nested) for each in info.fields]
        if info.tag_field is not None and isinstance(info.tag, str):
            tag = Choice((info.tag,))
            members.insert(0, Member(info.tag_field, tag, True, False, None, "Selects the variant."))
        wire = {each.name: each.encode_name for each in info.fields}
        return NamedType(
            name=struct.__name__,
            module=struct.__module__.rpartition(".")[2],
            doc=type_docs(struct),
            members=tuple(members),
            exactly_one=tuple(wire[name] for name in struct.exactly_one),
            at_least_one=tuple(wire[name] for name in struct.at_least_one),
        )

    def _member(self, struct: type[Wire], each: inspect.Field, nested: list[type[Wire]]) -> Member:
        default = each.default if isinstance(each.default, str | int | bool) else None
        shape = self._shape(each.type, nested)
        return Member(
            name=each.encode_name,
            shape=shape if each.required else _without_null(shape),
            required=each.required,
            means_null=_has_meaning_as_null(each.type),
            default=None if each.default is NODEFAULT else default,
            doc=field_docs(struct, each.name),
        )

    def _shape(self, node: inspect.Type, nested: list[type[Wire]]) -> Shape:
        match node:
            case inspect.Metadata():
                extra = Extra.read(node)
                return self._named(_annotated(self._shape(node.type, nested), extra), extra)
            case inspect.ListType():
                return Listing(self._unnamed(self._shape(node.item_type, nested)))
            case inspect.UnionType():
                return _merged(tuple(self._shape(option, nested) for option in node.types))
            case inspect.StructType():
                if not issubclass(node.cls, Wire):
                    raise UnsupportedType(f"{node.cls.__name__} does not derive from Wire")
                nested.append(node.cls)
                return Ref(node.cls.__name__)
            case _:
                return _scalar(node)

    def _unnamed(self, shape: Shape) -> Shape:
        """A union with named values replaced by their shapes, because a union may name only types."""
        if not isinstance(shape, OneOf):
            return shape
        named = [option.name if isinstance(option, Ref) else "" for option in shape.options]
        values = [self.values.get(name) for name in named]
        return OneOf(
            tuple(
                value.shape if value else option for value, option in zip(values, shape.options, strict=True)
            )
        )

    def _named(self, shape: Shape, extra: "Extra") -> Shape:
        """A reference to the value if the annotation names it, else the shape."""
        if extra.title is None:
            return shape
        if extra.description is None:
            raise MissingDocstring(f"{extra.title} has no description; add one to its Meta")
        value = NamedValue(extra.title, extra.description, shape)
        if self.values.setdefault(extra.title, value) != value:
            raise UnsupportedType(f"{extra.title} names two different values")
        return Ref(extra.title)


def _has_meaning_as_null(node: inspect.Type) -> bool:
    if isinstance(node, inspect.UnionType):
        return any(_has_meaning_as_null(option) for option in node.types)
    return isinstance(node, inspect.Metadata) and Extra.read(node).null_has_meaning


def _without_null(shape: Shape) -> Shape:
    if isinstance(shape, OneOf):
        rest = tuple(option for option in shape.options if not isinstance(option, Null))
        return rest[0] if len(rest) == 1 else OneOf(rest)
    return shape


def _merged(options: tuple[Shape, ...]) -> Shape:
    """A union of the options; a float covers an integer."""
    if Number(False) in options:
        options = tuple(option for option in options if option != Number(True))
    return options[0] if len(options) == 1 else OneOf(options)


def _scalar(node: inspect.Type) -> Shape:
    match node:
        case inspect.StrType():
            return Text(node.min_length, node.max_length, node.pattern)
        case inspect.IntType():
            return Number(True, node.ge, node.le)
        case inspect.FloatType():
            return Number(False, node.ge, node.le)
        case inspect.LiteralType():
            return Choice(tuple(value for value in node.values if isinstance(value, str | int)))
        case inspect.BoolType():
            return Boolean()
        case inspect.NoneType():
            return Null()
        case inspect.RawType():
            return Opaque(is_object=False)
        case _:
            raise UnsupportedType(f"the protocol model cannot express {type(node).__name__}")


def _annotated(shape: Shape, extra: "Extra") -> Shape:
    """The shape with the details of its annotation."""
    if extra.known_values:
        return Choice(extra.known_values, is_open=True)
    if isinstance(shape, Opaque):
        return Opaque(is_object=extra.type == "object")
    if isinstance(shape, Text):
        return shape._replace(format=extra.format)
    return shape


class MissingDocstring(LookupError):
    """Raised when a type or a field has no docstring."""


@cache
def _documented(path: str) -> dict[tuple[str, str], str]:
    """The field docstrings of one source file, by class and field."""
    found: dict[tuple[str, str], str] = {}
    for node in ast.parse(Path(path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            for before, after in zip(node.body, node.body[1:], strict=False):
                text = _literal(after)
                if text and isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
                    found[node.name, before.target.id] = text
    return found


def _literal(node: ast.stmt) -> str | None:
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return " ".join(node.value.value.split())
    return None


def field_docs(struct: type, field: str) -> str:
    """The docstring of a field, from the class itself or its nearest base that documents it.

    Raises:
        MissingDocstring: the field has no docstring.
    """
    for base in struct.__mro__:
        path = getattr(sys.modules.get(base.__module__), "__file__", None)
        if path and path.endswith(".py") and (text := _documented(path).get((base.__name__, field))):
            return text
    raise MissingDocstring(
        f"{struct.__module__}.{struct.__name__}.{field} has no docstring; write one under the field"
    )


def type_docs(struct: type) -> str:
    """The docstring of a class as one line.

    Raises:
        MissingDocstring: the class itself has no docstring.
    """
    text = struct.__dict__.get("__doc__")
    if not text:
        raise MissingDocstring(f"{struct.__module__}.{struct.__name__} has no docstring")
    return " ".join(text.split())
