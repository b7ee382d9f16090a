"""Emits the Markdown pages: methods, the types of each area, errors, capabilities."""

from collections.abc import Callable, Mapping, Sequence

from sidecar.codegen.model import (
    Boolean,
    Choice,
    Listing,
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
from sidecar.protocol.methods import Method

NOTICE = "<!-- Generated from sidecar/protocol by `make schema`; do not edit. -->"


def page(title: str, blocks: Sequence[str]) -> str:
    """A whole page: notice, title, and blocks separated by blank lines."""
    return "\n\n".join([NOTICE, f"# {title}", *blocks]) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; a vertical bar inside a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def member_table(named: NamedType, link: Callable[[str], str]) -> str:
    """The members of a type as a table, or a sentence if it has none; `link` returns a type's address."""
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
            return f"{words}, or a future value" if shape.is_open else words
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


AREAS = {
    "lifecycle": ("Lifecycle", "lifecycle.md", ("", "$", "window")),
    "context": ("Context", "history.md", ("context",)),
    "session": ("Sessions", "sessions.md", ("session",)),
    "memory": ("Memory", "memory.md", ("memory",)),
    "tools": ("Tools", "tools.md", ("tools",)),
    "subagent": ("Subagents", "subagents.md", ("subagent",)),
    "engine": ("Engines", "engines.md", ("engine",)),
    "runtime": ("Requests to the runtime", "server-to-host.md", ("runtime",)),
}
"""Areas of methods: the title of their page, the page with their rules, and the prefixes of their names."""

SHARED = "shared"
"""The page of the types that several areas use."""

_DIRECTIONS = {"hostToServer": "host to server", "serverToHost": "server to host", "both": "both"}


def emit_methods(model: ProtocolModel) -> str:
    """The text of `methods.md`."""
    pages = places(model)
    core = [method for method in model.methods if method.is_core]
    common = ", ".join(model.common_errors)
    blocks = [
        "Each name links to its params, result and errors. Optional members may be absent or `null`, which "
        "mean the same. Unknown members are ignored, and so are unknown values of enumerations.",
        f"The following errors can occur in any request of the host and are not repeated: {common}.",
        "## The core profile",
        f"A first host needs only these {len(core)} methods, which `core` marks in "
        "[protocol.json](protocol.json).",
        _table(core),
        "## All methods",
        _table(model.methods),
        "## Types",
        "By area: " + ", ".join(f"[{area}](methods/{area}.md)" for area in (*AREAS, SHARED)) + ".",
        "\n".join(f"- [{name}]({path})" for name, path in sorted(pages.items())),
    ]
    return page("Methods", blocks)


def emitter_of_area(area: str) -> Callable[[ProtocolModel], str]:
    """The function that emits the page of an area."""
    return lambda model: _area_page(model, area)


def places(model: ProtocolModel) -> dict[str, str]:
    """The address of each type and value, relative to the folder of the specification."""
    users: dict[str, set[str]] = {name: set() for name in (*model.types, *model.values)}
    for area in AREAS:
        for method in _of(model, area):
            for name in _reached(model, method):
                users[name].add(area)
    data = {entry.data.__name__ for entry in model.errors}
    found: dict[str, str] = {}
    for name, areas in users.items():
        home = f"methods/{areas.pop() if len(areas) == 1 else SHARED}.md"
        found[name] = f"{'errors.md' if name in data else home}#{name.lower()}"
    return found


def _area_page(model: ProtocolModel, area: str) -> str:
    pages = places(model)
    own: set[str] = set()
    if area == SHARED:
        title, blocks = "Shared types", ["Types that methods of several areas use."]
    else:
        title, rules, _ = AREAS[area]
        blocks = [f"The rules are in [{rules}](../{rules})."]
        for method in _of(model, area):
            blocks += [f"## `{method.name}`", _facts(method)]
            for name in filter(None, (method.params, method.result)):
                own.add(name)
                blocks += _described(model, name, pages)
    others = [name for name in pages if pages[name].startswith(f"methods/{area}.md") and name not in own]
    if others and area != SHARED:
        blocks.append("## Types of these methods")
    blocks += [block for name in sorted(others) for block in _described(model, name, pages)]
    return page(title, blocks)


def _described(model: ProtocolModel, name: str, pages: Mapping[str, str]) -> list[str]:
    def link(other: str) -> str:
        path = pages[other]
        return path.removeprefix("methods/") if path.startswith("methods/") else f"../{path}"

    if value := model.values.get(name):
        return [f"### {name}", value.doc, f"Type: {shape_words(value.shape, link)}."]
    return [f"### {name}", model.types[name].doc, member_table(model.types[name], link)]


def _reached(model: ProtocolModel, method: Method) -> set[str]:
    reached: set[str] = set()
    left = [name for name in (method.params, method.result) if name]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            members = model.types[name].members if name in model.types else ()
            left += [other for member in members for other in _named(member.shape)]
    return reached


def _named(shape: Shape) -> list[str]:
    match shape:
        case Ref():
            return [shape.name]
        case Listing():
            return _named(shape.item)
        case OneOf():
            return [name for option in shape.options for name in _named(option)]
        case _:
            return []


def _of(model: ProtocolModel, area: str) -> list[Method]:
    starts = AREAS[area][2] if area in AREAS else ()
    return [method for method in model.methods if method.name.rpartition("/")[0].partition("/")[0] in starts]


def _table(methods: Sequence[Method]) -> str:
    rows = [
        (f"[`{each.name}`]({_link(each)})", _DIRECTIONS[each.direction], each.kind, each.summary)
        for each in methods
    ]
    return table(("method", "direction", "kind", "what it does"), rows)


def _link(method: Method) -> str:
    start = method.name.rpartition("/")[0].partition("/")[0]
    area = next(area for area, (_, _, starts) in AREAS.items() if start in starts)
    anchor = "".join(letter for letter in method.name.lower() if letter.isalnum())
    return f"methods/{area}.md#{anchor}"


def _facts(method: Method) -> str:
    facts = [
        method.summary,
        f"{_DIRECTIONS[method.direction].capitalize()}, {method.kind}, since {method.since}.",
    ]
    if method.is_core:
        facts.append("Part of the core profile.")
    if method.capability is not None:
        facts.append(f"Needs {method.capability}.")
    if method.kind == "request" and method.result is None:
        facts.append("The result is `null`.")
    if method.errors:
        facts.append(f"Errors: {', '.join(method.errors)}.")
    return " ".join(facts)


def emit_errors(model: ProtocolModel) -> str:
    """The text of `errors.md`."""
    rows = [
        (str(entry.code), entry.name, entry.when, f"[{entry.data.__name__}](#{entry.data.__name__.lower()})")
        for entry in model.errors
    ]
    advice = [(entry.name, "yes" if entry.retryable else "no", entry.hint) for entry in model.errors]
    blocks = [
        "Every error of the server has `data` with `retryable` and `hint`.",
        table(("code", "name", "when", "data"), rows),
        "## Advice",
        "The defaults for `data`; the server may send more specific values.",
        table(("name", "retryable", "hint"), advice),
        "## Data",
    ]
    for name in dict.fromkeys(entry.data.__name__ for entry in model.errors):
        blocks += [
            f"### {name}",
            model.types[name].doc,
            member_table(model.types[name], places(model).__getitem__),
        ]
    return page("Errors", blocks)


_SECTIONS = (
    (
        "The host's part",
        "ContextEngineOptions",
        "Under `initializationOptions.contextEngine` of `initialize`.",
    ),
    ("The server's part", "ContextEngineCapabilities", "Under `capabilities.experimental.contextEngine`."),
    ("Limits", "Limits", "Bounds of the connection."),
    ("Engines", "EngineInfo", "What an engine declares."),
)


def emit_capabilities(model: ProtocolModel) -> str:
    """The text of `capabilities.md`."""
    blocks = ["Negotiated once, by `initialize`; nothing is declared later."]
    for title, name, where in _SECTIONS:
        blocks += [f"## {title}", where, member_table(model.types[name], places(model).__getitem__)]
    blocks += ["## Host capabilities", _host_capabilities(model)]
    formats = "\n".join(f"- `{name}`" for name in model.message_formats)
    versions = [(version.name, version.summary) for version in model.versions]
    blocks += ["## Dialects", formats, "## Versions", table(("version", "what it brought"), versions)]
    return page("Capabilities", blocks)


def _host_capabilities(model: ProtocolModel) -> str:
    rows: list[tuple[str, str]] = []
    for capability in model.host_capabilities:
        needing = [f"`{method.name}`" for method in model.methods if method.capability == capability]
        rows.append((f"`{capability}`", ", ".join(needing) or "a member of another method"))
    return table(("capability", "methods that need it"), rows)
