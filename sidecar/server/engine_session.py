"""The handle by which an engine works on one session during one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import TYPE_CHECKING

from sidecar.engine.calls import IngestOutcome
from sidecar.engine.session import SpawnedSession
from sidecar.store.stored import SummaryNode
from sidecar.store.writes import AddSummary

if TYPE_CHECKING:
    from sidecar.engine.entry import Entry
    from sidecar.engine.guard.pinned import Pin
    from sidecar.server.sessions.gathering import Slot
    from sidecar.server.sessions.live import LiveSession
    from sidecar.server.sessions.timeline import SessionTimeline
    from sidecar.store.search import SearchQuery, SearchResult
    from sidecar.store.spawn import Spawn

Report = Callable[[str, int | None], None]


def silent(message: str, percentage: int | None) -> None:
    """Progress that nobody asked for."""
    del message, percentage


def state_name(engine_id: str, name: str) -> str:
    """The name under which the store keeps a value of an engine."""
    return f"engine.{engine_id}.{name}"


def spawned_session(spawn: Spawn) -> SpawnedSession:
    """A spawn as engines see it."""
    return SpawnedSession(
        preparation_id=spawn.preparation_id,
        parent_session_key=spawn.parent_key,
        parent_session_id=spawn.parent_id,
        child_session_key=spawn.child_key,
        child_session_id=spawn.child_id,
        context_mode=spawn.mode,
        prepared_ms=spawn.prepared_ms,
        expires_ms=spawn.expires_ms,
    )


class StoredHistory:
    """The stored messages of a session as its engine may read them."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live

    @property
    def version(self) -> str:
        """Another one whenever stored messages change in another way than by appending."""
        head = self._live.head
        return f"{head.uid}.{head.revision}" if head else ""

    @property
    def count(self) -> int:
        """How many messages are stored."""
        return self._live.head.message_count if self._live.head else 0

    async def read(self, first: int, last: int) -> list[Entry]:
        """The entries at positions `first` to `last`."""
        live = self._live
        return [live.stored.entry(message) for message in await live.store.messages(live.ref, first, last)]

    async def search(self, query: SearchQuery) -> SearchResult:
        """The stored messages that match."""
        return await self._live.searching.search(self._live.ref, query)


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
        self._prefix = state_name(engine_id, "")
        self._revision = live.head.revision if live.head else 0
        self.report: Report = silent
        self.slot: Slot | None = None
        """Where the next message waits to be stored together with others."""
        self.stored: IngestOutcome | None = None
        """What became of the message that the engine has let the sidecar store."""

    def another(self) -> EngineSession:
        """A second handle of the same session."""
        return EngineSession(
            self.live, self.timeline, self._engine_id, agent_id=self.agent_id, session_key=self.session_key
        )

    @property
    def history(self) -> StoredHistory:
        """The session's stored messages by position."""
        return StoredHistory(self.live)

    def calibrated(self, tokens: int) -> int:
        """What so many tokens of our own count in a budget."""
        return ceil(tokens * self.live.factor)

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

    async def summary_nodes(self, node_ids: Sequence[str]) -> list[SummaryNode]:
        """The summaries of these ids."""
        return await self.live.store.summary_nodes(self.live.ref, node_ids)

    async def add_summary(self, node: SummaryNode, replaces: Sequence[str] = ()) -> bool:
        """Keep a summary in place of others; false where the history changed since the call began."""
        if self.live.exempt:
            return False
        return await self.live.store.write(
            AddSummary(self.live.ref, node, revision=self._revision, replaces=replaces)
        )

    async def spawn(self) -> SpawnedSession | None:
        """How the session was spawned by another one."""
        found = await self.live.store.spawn_of(self.live.ref)
        return spawned_session(found) if found else None

    def count(self, text: str) -> int:
        """Tokens of a text as the answer's budget counts them."""
        return self.live.count(text)

    async def pins(self) -> list[Pin]:
        """What is pinned and there."""
        from sidecar.server.sessions.pins import find_pins

        return (await find_pins(self.live, self.timeline))[0]

    def report_to(self, report: Report) -> None:
        """Let `progress` go there from now on."""
        self.report = report

    def progress(self, message: str, percentage: int | None = None) -> None:
        """Report progress to the host, if it asked for it."""
        self.report(message, percentage)
