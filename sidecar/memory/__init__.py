"""Memory sources and their coordination; what a source of one's own needs is imported from here."""

from sidecar.memory.contract import (
    Fragment,
    InjectionPoint,
    MemoryRequest,
    MemorySource,
    SourceHost,
)

__all__ = ["Fragment", "InjectionPoint", "MemoryRequest", "MemorySource", "SourceHost"]
