"""The handle by which an engine works on one session during one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sidecar.store.contract import AddSummary, SummaryNode

if TYPE_CHECKING:
    from sidecar.server.sessions.live import LiveSession
    from sidecar.server.sessions.timeline import SessionTimeline

if TYPE_CHECKING:
    from sidecar.server.sessions.gathering import Slot

Report = Callable[[str, int | None], None]


def silent(message: str, percentage: int | None) -> None:
    """Progress that nobody asked for."""
    del message, percentage


class EngineSession:
    """One session as an engine may use it; values are kept apart from those of other engines."""

    def __init__(
        self,
        live: LiveSession,
        timeline: SessionTimeline,
        engine_id: str,
        *,
        agent_id: str | None = None,
        session_key: str | None = None,
    ) -> None:
        self.live = live
        self.timeline = timeline
        self.agent_id = agent_id
        self.session_key = session_key
        self._engine_id = engine_id
        self._prefix = f"engine.{engine_id}."
        self._revision = live.head.revision if live.head else 0
        self.report: Report = silent
        self.slot: Slot | None = None
        """Where the next message waits to be stored together with others."""

    def another(self) -> EngineSession:
        """A second handle of the same session."""
        return EngineSession(
            self.live, self.timeline, self._engine_id, agent_id=self.agent_id, session_key=self.session_key
        )

    @property
    def session_id(self) -> str:
        """The host's key of the session."""
        return self.live.ref.session_id

    async def state(self, name: str) -> bytes | None:
        """A value that this engine kept for the session."""
        return await self.live.state(self._prefix + name)

    async def save_state(self, name: str, value: bytes | None) -> None:
        """Keep a small value durably."""
        await self.live.save_state(self._prefix + name, value)

    async def summaries(self) -> list[SummaryNode]:
        """The session's summaries by first position."""
        return await self.live.store.summaries(self.live.ref)

    async def add_summary(self, node: SummaryNode, replaces: Sequence[str] = ()) -> bool:
        """Keep a summary in place of others; false where the history changed since the call began."""
        return await self.live.store.write(
            AddSummary(self.live.ref, node, revision=self._revision, replaces=replaces)
        )

    def progress(self, message: str, percentage: int | None = None) -> None:
        """Report progress to the host, if it asked for it."""
        self.report(message, percentage)
