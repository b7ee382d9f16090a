"""The conformance suite for context engines; it uses an engine as a host would, through a real sidecar.

`context-sidecar conformance engine my_package:MyEngine` runs it; so does `engines check` with an id.
"""

from sidecar.conformance.engine.subject import (
    ENGINE_SUITE,
    Conversation,
    EngineSubject,
    configured_engine,
    engine_class,
)
from sidecar.conformance.engine.suite import check_engine

__all__ = [
    "ENGINE_SUITE",
    "Conversation",
    "EngineSubject",
    "check_engine",
    "configured_engine",
    "engine_class",
]
