"""The protocol as neutral data: what every emitter reads."""

from typing import NamedTuple

from sidecar.protocol.errors import ErrorEntry
from sidecar.protocol.lifecycle import ProtocolVersion
from sidecar.protocol.methods import Method

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
"""Anything that JSON can say."""


class Text(NamedTuple):
    """A string; lengths in code points."""

    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None


class Number(NamedTuple):
    """A number, of integers only where `integer` is set."""

    integer: bool
    minimum: int | float | None = None
    maximum: int | float | None = None


class Boolean(NamedTuple):
    """True or false."""


class Null(NamedTuple):
    """Nothing but `null`."""


class Choice(NamedTuple):
    """A string or an integer out of a list."""

    values: tuple[str | int, ...]
    is_open: bool = False
    """Whether later versions may add values, so that readers pass over those that they do not know."""


class Opaque(NamedTuple):
    """JSON that is passed on without being decoded."""

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
    """As spelled on the wire."""
    shape: Shape
    """What it holds; that an optional member may be `null` too is not repeated here."""
    required: bool
    means_null: bool
    """Whether `null` says something else than an absent member."""
    default: str | int | bool | None
    """What an absent member means, `None` where that is nothing."""
    doc: str


class NamedType(NamedTuple):
    """An object of the protocol."""

    name: str
    module: str
    doc: str
    members: tuple[Member, ...]
    exactly_one: tuple[str, ...]
    """Members of which exactly one must be there."""
    at_least_one: tuple[str, ...]
    """Members of which one or more must be there."""


class NamedValue(NamedTuple):
    """A string, a number or an opaque object that has a name of its own."""

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
