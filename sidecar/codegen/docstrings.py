"""Reads the string literal under each field of a Struct out of the source."""

import ast
import sys
from functools import cache
from pathlib import Path


class MissingDocstring(LookupError):
    """Raised when a type or a field has no docstring."""


@cache
def _documented(path: str) -> dict[tuple[str, str], str]:
    """Docstrings of one source file by class and field."""
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
    """What the docstring under a field says, in the class itself or the nearest base that has the field.

    Raises:
        MissingDocstring: there is none.
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
        MissingDocstring: there is none of its own.
    """
    text = struct.__dict__.get("__doc__")
    if not text:
        raise MissingDocstring(f"{struct.__module__}.{struct.__name__} has no docstring")
    return " ".join(text.split())
