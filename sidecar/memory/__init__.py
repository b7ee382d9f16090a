"""Memory sources and their coordination; exports the names that third-party sources need."""

from sidecar.memory.contract import (
    Fragment,
    InjectionPoint,
    MemoryRequest,
    MemorySource,
    SourceHost,
)

__all__ = ["Fragment", "InjectionPoint", "MemoryRequest", "MemorySource", "SourceHost"]
