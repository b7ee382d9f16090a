"""Writes `errors.md`: the table of errors and the members of their data."""

from sidecar.codegen.emitters.markdown import member_table, page, table
from sidecar.codegen.emitters.methods import places
from sidecar.codegen.model import ProtocolModel


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
        "What `data` says unless the server knows better.",
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
