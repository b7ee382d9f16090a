"""Lets a session forget what was injected into it, once a compaction has removed that from the context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidecar.memory.record import decoded
from sidecar.server.memory.session_memory import STATE, injected_ids

if TYPE_CHECKING:
    from sidecar.server.sessions.live import LiveSession
    from sidecar.server.sidecar import Sidecar


async def forget_injections(sidecar: Sidecar, live: LiveSession) -> None:
    """Clear what counts as injected; what the open turn was given stays with it."""
    kept = await live.state(STATE)
    if kept is None:
        return
    record = decoded(kept)
    record.compact()
    await injected_ids(sidecar).clear_injected_ids(live.ref.session_id)
    await live.save_state(STATE, record.encoded())
