"""Writes `methods.md`: the table of methods, then every type member by member."""

from sidecar.codegen.emitters.markdown import member_table, page, table
from sidecar.codegen.model import ProtocolModel
from sidecar.protocol.methods import Method

_DIRECTIONS = {"hostToServer": "host to server", "serverToHost": "server to host", "both": "both"}


def emit_methods(model: ProtocolModel) -> str:
    """The text of `methods.md`."""
    rows = [
        (
            f"[`{method.name}`](#{_anchor(method.name)})",
            _DIRECTIONS[method.direction],
            method.kind,
            method.summary,
        )
        for method in model.methods
    ]
    common = ", ".join(model.common_errors)
    blocks = [
        "A member that is not required may be `null`: that means the same as absent.",
        "Unknown members are ignored.",
        f"Errors that any request of the host may meet are not repeated: {common}.",
        table(("method", "direction", "kind", "what it does"), rows),
    ]
    shown: set[str] = set()
    for method in model.methods:
        blocks.append(f"## `{method.name}`")
        blocks.append(_facts(method))
        for name in (method.params, method.result):
            if name is not None:
                shown.add(name)
                blocks += [f"### {name}", model.types[name].doc, member_table(model.types[name])]
    data = {entry.data.__name__ for entry in model.errors}
    blocks.append("## Types that others use")
    for name in sorted(set(model.types) - shown - data):
        blocks += [f"### {name}", model.types[name].doc, member_table(model.types[name])]
    return page("Methods", blocks)


def _facts(method: Method) -> str:
    facts = [
        method.summary,
        f"{_DIRECTIONS[method.direction].capitalize()}, {method.kind}, since {method.since}.",
    ]
    if method.capability is not None:
        facts.append(f"Needs {method.capability}.")
    if method.kind == "request" and method.result is None:
        facts.append("The result is `null`.")
    if method.errors:
        facts.append(f"Errors: {', '.join(method.errors)}.")
    return " ".join(facts)


def _anchor(method: str) -> str:
    return "".join(letter for letter in method.lower() if letter.isalnum())
