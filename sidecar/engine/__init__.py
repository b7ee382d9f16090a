"""Everything that the author of an engine imports.

Names are looked up when they are used: who imports a module of this package does not load the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sidecar.engine.compaction import delegate_compaction_to_runtime
    from sidecar.engine.contract import (
        AfterTurnRequest,
        AssembleRequest,
        Assembly,
        CompactOutcome,
        CompactRequest,
        ContextEngine,
        EngineInfo,
        History,
        IncomingMessage,
        IngestOutcome,
        Kept,
        Kind,
        Made,
        MaintainOutcome,
        PreflightOutcome,
        Session,
        SpawnedSession,
        SpawnEndReason,
        StoringEngine,
        Tail,
        Timeline,
    )
    from sidecar.engine.entry import Entry
    from sidecar.engine.host import EngineHost, HostCapabilityMissing, HostRequestFailed
    from sidecar.engine.memory_prompt import build_memory_system_prompt_addition
    from sidecar.engine.overflow import Overflow
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
    "Window",
    "build_memory_system_prompt_addition",
    "cut_window",
    "delegate_compaction_to_runtime",
    "drop_turns",
    "keep_window",
    "tokens_of",
    "whole_window",
]

_ELSEWHERE = {
    "Entry": "entry",
    "EngineHost": "host",
    "HostCapabilityMissing": "host",
    "HostRequestFailed": "host",
    "Overflow": "overflow",
    "Window": "window",
    "build_memory_system_prompt_addition": "memory_prompt",
    "cut_window": "window",
    "delegate_compaction_to_runtime": "compaction",
    "drop_turns": "window",
    "keep_window": "window",
    "tokens_of": "window",
    "whole_window": "window",
}
"""Modules of what is not in `contract`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_ELSEWHERE.get(name, 'contract')}")
    return getattr(module, name)
