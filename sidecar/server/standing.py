"""Tells what became of a stored message in the newest answer of its session."""

from __future__ import annotations

from typing import NamedTuple

from sidecar.engine.guard.decisions import explain
from sidecar.server.sidecar import Sidecar


class Standing(NamedTuple):
    """Where a message stands in what the model sees."""

    decision: str
    """`sent`, `summarised`, `stubbed`, `dropped` or `pinned`."""
    reason: str


async def standing(sidecar: Sidecar, session_id: str, position: int) -> Standing | None:
    """What became of the message at a position, from 1; `None` where this process remembers no answer."""
    live = sidecar.sessions.cached(session_id)
    result = live.results.newest_of(None) if live else None
    messages = await sidecar.store.messages(sidecar.ref(session_id), position, position)
    if result is None or not messages:
        return None
    for decided in await explain(result.timeline, result.record):
        if decided.message_id == messages[0].message_id:
            return Standing(decided.verdict, decided.reason)
    return None
