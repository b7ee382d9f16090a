"""Writes `capabilities.md`: what each side can declare, and which methods depend on it."""

from sidecar.codegen.emitters.markdown import member_table, page, table
from sidecar.codegen.emitters.methods import places
from sidecar.codegen.model import ProtocolModel

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
