"""The list of generated files: where each one goes, and who writes it."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import sidecar
from sidecar.codegen.emitters.capabilities import emit_capabilities
from sidecar.codegen.emitters.errors import emit_errors
from sidecar.codegen.emitters.go import emit_go
from sidecar.codegen.emitters.methods import AREAS, SHARED, emit_methods, emitter_of_area
from sidecar.codegen.emitters.protocol import emit_protocol
from sidecar.codegen.emitters.rust import emit_rust
from sidecar.codegen.emitters.schema import emit_schema
from sidecar.codegen.emitters.typescript import (
    emit_typescript_errors,
    emit_typescript_methods,
    emit_typescript_types,
)
from sidecar.codegen.model import ProtocolModel


class Target(NamedTuple):
    """One generated file."""

    path: str
    """Below the root of the repository."""
    emit: Callable[[ProtocolModel], str]


def _guide_to_drivers(_: ProtocolModel) -> str:
    """The page on drivers, which lies in the package so that the command can print it."""
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
    Target("clients/go/protocol.go", emit_go),
    Target("clients/rust/src/protocol.rs", emit_rust),
    Target("clients/typescript/src/protocol/types.ts", emit_typescript_types),
    Target("clients/typescript/src/protocol/methods.ts", emit_typescript_methods),
    Target("clients/typescript/src/protocol/errors.ts", emit_typescript_errors),
)
"""Every generated file; an emitter for another language is one more line."""
