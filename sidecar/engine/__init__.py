"""Everything that an engine author imports.

Names are resolved on first use: importing one module of this package does not load the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sidecar.engine.calls import (
        AfterTurnRequest,
        AssembleRequest,
        Assembly,
        CompactOutcome,
        CompactRequest,
        IncomingMessage,
        IngestOutcome,
        Kept,
        Kind,
        Made,
        MaintainOutcome,
        Overflow,
        PreflightOutcome,
    )
    from sidecar.engine.contract import ContextEngine, EngineInfo, StoringEngine
    from sidecar.engine.entry import Entry
    from sidecar.engine.host import (
        EngineHost,
        HostCapabilityMissing,
        HostRequestFailed,
        build_memory_system_prompt_addition,
        delegate_compaction_to_runtime,
    )
    from sidecar.engine.session import History, Session, SpawnedSession, SpawnEndReason, Tail, Timeline, View
    from sidecar.engine.window import (
        Window,
        cut_window,
        drop_turns,
        keep_window,
        tokens_of,
        whole_window,
    )

__all__ = [
    "AfterTurnRequest",
    "AssembleRequest",
    "Assembly",
    "CompactOutcome",
    "CompactRequest",
    "ContextEngine",
    "EngineHost",
    "EngineInfo",
    "Entry",
    "History",
    "HostCapabilityMissing",
    "HostRequestFailed",
    "IncomingMessage",
    "IngestOutcome",
    "Kept",
    "Kind",
    "Made",
    "MaintainOutcome",
    "Overflow",
    "PreflightOutcome",
    "Session",
    "SpawnEndReason",
    "SpawnedSession",
    "StoringEngine",
    "Tail",
    "Timeline",
    "View",
    "Window",
    "build_memory_system_prompt_addition",
    "cut_window",
    "delegate_compaction_to_runtime",
    "drop_turns",
    "keep_window",
    "tokens_of",
    "whole_window",
]

_MODULES = {
    "calls": (
        "AfterTurnRequest",
        "AssembleRequest",
        "Assembly",
        "CompactOutcome",
        "CompactRequest",
        "IncomingMessage",
        "IngestOutcome",
        "Kept",
        "Kind",
        "Made",
        "MaintainOutcome",
        "Overflow",
        "PreflightOutcome",
    ),
    "contract": ("ContextEngine", "EngineInfo", "StoringEngine"),
    "entry": ("Entry",),
    "host": (
        "EngineHost",
        "HostCapabilityMissing",
        "HostRequestFailed",
        "build_memory_system_prompt_addition",
        "delegate_compaction_to_runtime",
    ),
    "session": ("History", "Session", "SpawnEndReason", "SpawnedSession", "Tail", "Timeline", "View"),
    "window": ("Window", "cut_window", "drop_turns", "keep_window", "tokens_of", "whole_window"),
}
"""The names exported by each module."""


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
