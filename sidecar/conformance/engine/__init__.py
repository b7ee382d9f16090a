"""The suite for context engines: an engine is checked through a real sidecar, as a host would use it.

`context-sidecar conformance engine my_package:MyEngine` runs it; so does `engines check` with an id.
"""

from importlib import import_module

from sidecar.conformance.engine.running import check_engine
from sidecar.conformance.engine.subject import Conversation, EngineSubject, configured_engine, engine_class
from sidecar.conformance.engine.suite import ENGINE_SUITE

__all__ = [
    "ENGINE_SUITE",
    "Conversation",
    "EngineSubject",
    "check_engine",
    "configured_engine",
    "engine_class",
]

_AREAS = ("declaring", "taking_in", "assembling", "compacting", "living")
"""Modules that add their checks to the suite, in the order in which they are run."""

for _area in _AREAS:
    import_module(f"{__name__}.{_area}")
