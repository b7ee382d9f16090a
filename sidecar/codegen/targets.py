"""The list of generated files: where each one goes, and who writes it."""

from collections.abc import Callable
from typing import NamedTuple

from sidecar.codegen.emitters.capabilities import emit_capabilities
from sidecar.codegen.emitters.errors import emit_errors
from sidecar.codegen.emitters.methods import emit_methods
from sidecar.codegen.emitters.openrpc import emit_openrpc
from sidecar.codegen.emitters.protocol import emit_protocol
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


TARGETS = (
    Target("spec/schema.json", emit_schema),
    Target("spec/protocol.json", emit_protocol),
    Target("spec/openrpc.json", emit_openrpc),
    Target("spec/methods.md", emit_methods),
    Target("spec/errors.md", emit_errors),
    Target("spec/capabilities.md", emit_capabilities),
    Target("clients/typescript/src/protocol/types.ts", emit_typescript_types),
    Target("clients/typescript/src/protocol/methods.ts", emit_typescript_methods),
    Target("clients/typescript/src/protocol/errors.ts", emit_typescript_errors),
)
"""Every generated file; an emitter for another language is one more line."""
