"""Keeps which tool results of a session stay replaced."""

from __future__ import annotations

from sidecar.server.engine_session import EngineSession

STUBS = "stubs"


async def show_stubs(session: EngineSession, large: int = 0) -> None:
    """Let the session's timeline show stubs where earlier answers did, and of `large` results in tokens."""
    stubs = session.live.guard.stubs
    stubs.large = large
    stubs.load(await session.live.state(STUBS))
    session.timeline.stubs = stubs


async def keep_stubs(session: EngineSession) -> None:
    """Make the stubs that were added survive a restart; returns once they are durable."""
    await session.live.save_state(STUBS, session.live.guard.stubs.encoded())
