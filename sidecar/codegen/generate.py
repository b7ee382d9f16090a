"""Writes the files that are generated from the protocol, or reports those that are out of date."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import sidecar
from sidecar.codegen.go import emit_go
from sidecar.codegen.markdown import (
    AREAS,
    SHARED,
    emit_capabilities,
    emit_errors,
    emit_methods,
    emitter_of_area,
)
from sidecar.codegen.model import ProtocolModel, read_protocol
from sidecar.codegen.python import emit_python
from sidecar.codegen.rust import emit_rust
from sidecar.codegen.schema import emit_protocol, emit_schema
from sidecar.codegen.typescript import (
    emit_typescript_errors,
    emit_typescript_methods,
    emit_typescript_types,
)
from sidecar.origin import install_command, npm_command
from sidecar.private_files import write


class Target(NamedTuple):
    """One generated file."""

    path: str
    """The path relative to the root of the repository."""
    emit: Callable[[ProtocolModel], str]


def _guide_to_drivers(_: ProtocolModel) -> str:
    """The page on drivers; its source is in the package so that the command line can print it."""
    guide = Path(sidecar.__file__).parent / "conformance/client/guide.md"
    notice = "<!-- Generated from sidecar/conformance/client/guide.md by `make schema`; do not edit. -->"
    return f"{notice}\n\n{guide.read_text(encoding='utf-8')}"


TARGETS = (
    Target("spec/schema.json", emit_schema),
    Target("spec/protocol.json", emit_protocol),
    Target("spec/methods.md", emit_methods),
    Target("spec/checking-clients.md", _guide_to_drivers),
    *(Target(f"spec/methods/{area}.md", emitter_of_area(area)) for area in (*AREAS, SHARED)),
    Target("spec/errors.md", emit_errors),
    Target("spec/capabilities.md", emit_capabilities),
    Target("sidecar/client/requests.py", emit_python),
    Target("clients/go/protocol.go", emit_go),
    Target("clients/rust/src/protocol.rs", emit_rust),
    Target("clients/typescript/src/protocol/types.ts", emit_typescript_types),
    Target("clients/typescript/src/protocol/methods.ts", emit_typescript_methods),
    Target("clients/typescript/src/protocol/errors.ts", emit_typescript_errors),
)
"""Every generated file; an emitter for another language adds a line."""

_CLIENTS = ("*.md", "doc/*.txt", "lua/**/*.lua", "src/*.ts")
_PLACES = ("*.md", "spec/*.md", *(f"clients/*/{place}" for place in _CLIENTS))
_PACKAGE = r'"[^"\n[]*context-sidecar(?:[^"\n[]*)(?:\[([a-z,]+)\])?[^"\n]*"'
_NPM = re.compile(r"\bnpm install --global [^\s`\"']*(?:context-sidecar|/dist/\*\.tgz)+")
_COMMAND = re.compile(rf"\b(pip|pipx|uv tool) install {_PACKAGE}")


def generate(root: Path, check: bool, targets: Sequence[Target] = TARGETS) -> list[str]:
    """Paths below `root` that were out of date, in the order of the targets.

    Without `check`, these files are written.

    Raises:
        MissingDocstring: a type or a field has no docstring.
        OSError: a file cannot be read or written.
    """
    model = read_protocol()
    texts = {root / target.path: target.emit(model) for target in targets}
    texts |= {path: corrected(path.read_text(encoding="utf-8")) for path in files(root) if path not in texts}
    drifted: list[str] = []
    for path, text in texts.items():
        wanted = text.encode()
        if path.is_file() and path.read_bytes() == wanted:
            continue
        drifted.append(path.relative_to(root).as_posix())
        if not check:
            write(path, wanted)
    return drifted


def files(root: Path) -> Iterable[Path]:
    """The files below a repository's root that may contain an install command."""
    return (path for place in _PLACES for path in sorted(root.glob(place)))


def corrected(text: str) -> str:
    """The text with install commands updated to the package's current origin."""
    return _NPM.sub(lambda _: npm_command(), _COMMAND.sub(_command, text))


def _command(found: re.Match[str]) -> str:
    extras = found[2].split(",") if found[2] else []
    return install_command(*extras, installer=found[1])
