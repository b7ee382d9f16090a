"""Keeps the commands that install this package, in documents and clients, to where it comes from."""

import re
from collections.abc import Iterable
from pathlib import Path

from sidecar.origin import install_command

_CLIENTS = ("*.md", "doc/*.txt", "lua/**/*.lua", "src/*.ts")
_PLACES = ("*.md", "spec/*.md", *(f"clients/*/{place}" for place in _CLIENTS))
_PACKAGE = r'"[^"\n[]*context-sidecar(?:[^"\n[]*)(?:\[([a-z,]+)\])?[^"\n]*"'
_COMMAND = re.compile(rf"\b(pip|pipx|uv tool) install {_PACKAGE}")


def files(root: Path) -> Iterable[Path]:
    """The files below a repository's root that may name such a command."""
    return (path for place in _PLACES for path in sorted(root.glob(place)))


def corrected(text: str) -> str:
    """The text with commands that name the package's origin."""
    return _COMMAND.sub(_command, text)


def _command(found: re.Match[str]) -> str:
    extras = found[2].split(",") if found[2] else []
    return install_command(*extras, installer=found[1])
