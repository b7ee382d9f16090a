"""Which module of `handlers` serves which methods; each is imported when one of them is first asked for."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidecar.rpc.router import Router
    from sidecar.server.sidecar import Sidecar

AREAS = {
    "ingest": ("context/ingest", "context/ingestBatch"),
    "assemble": ("context/assemble",),
    "bootstrap": ("context/bootstrap",),
    "turns": ("context/afterTurn", "context/commitTurn"),
    "compact": ("context/compact", "context/maintain", "context/preflight"),
    "explain": ("context/explain", "context/dispose"),
    "sessions": ("session/list", "session/get", "session/export"),
    "session_changes": ("session/configure", "session/truncate", "session/fork", "session/delete"),
    "pins": ("session/pin", "session/unpin", "session/pins"),
    "summaries": ("session/summaries",),
    "subagents": ("subagent/prepareSpawn", "subagent/rollbackSpawn", "subagent/ended"),
    "memory": ("memory/register", "memory/unregister", "memory/compile"),
    "tools": ("tools/list", "tools/call"),
    "engines": ("engine/list", "engine/doctor"),
}


def register_areas(router: Router, sidecar: Sidecar) -> None:
    """Serve all methods of the protocol that work on a sidecar."""
    for module, methods in AREAS.items():
        router.later(methods, partial(_register, module, router, sidecar))


def _register(module: str, router: Router, sidecar: Sidecar) -> None:
    handlers = import_module(f"sidecar.server.handlers.{module}")
    if sidecar.exempt is not None:
        from sidecar.server.handlers.exempt import ExemptAnswers

        router.answer_first(ExemptAnswers(sidecar, sidecar.exempt).by_method())
    handlers.register(router, sidecar)
