"""The pieces that all generated Markdown pages are made of."""

from collections.abc import Callable, Sequence

from sidecar.codegen.model import (
    Boolean,
    Choice,
    Listing,
    NamedType,
    Null,
    Number,
    OneOf,
    Opaque,
    Ref,
    Shape,
    Text,
)

NOTICE = "<!-- Generated from sidecar/protocol by `make schema`; do not edit. -->"


def page(title: str, blocks: Sequence[str]) -> str:
    """A whole page: notice, title, and blocks with an empty line between."""
    return "\n\n".join([NOTICE, f"# {title}", *blocks]) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; a vertical bar inside a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def member_table(named: NamedType, link: Callable[[str], str]) -> str:
    """The members of a type, or a sentence where it has none; `link` says where a type is described."""
    if not named.members:
        return "No members."
    rows = [
        (f"`{member.name}`", shape_words(member.shape, link), "yes" if member.required else "no", member.doc)
        for member in named.members
    ]
    return table(("member", "type", "required", "meaning"), rows)


def shape_words(shape: Shape, link: Callable[[str], str]) -> str:
    """A shape in a few words, with links to named types."""
    match shape:
        case Ref():
            return f"[{shape.name}]({link(shape.name)})"
        case Listing():
            return f"array of {shape_words(shape.item, link)}"
        case OneOf():
            return " or ".join(shape_words(option, link) for option in shape.options)
        case Choice():
            words = " or ".join(f"`{value}`" for value in shape.values)
            return f"{words}, or a value to come" if shape.is_open else words
        case Opaque():
            return "object" if shape.is_object else "any JSON"
        case _:
            return _scalar_words(shape)


def _scalar_words(shape: Text | Number | Boolean | Null) -> str:
    match shape:
        case Text():
            if shape.format == "date-time":
                return "RFC 3339 string"
            if shape.max_length:
                return f"string of {shape.min_length or 0} to {shape.max_length}"
            return "non-empty string" if shape.min_length else "string"
        case Number():
            low = "" if shape.minimum is None else f" >= {shape.minimum}"
            return ("integer" if shape.integer else "number") + low
        case Boolean():
            return "boolean"
        case Null():
            return "null"
