"""The session as an engine sees it during one call."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING, cast

from msgspec import structs

from sidecar.engine.calls import Assembly, IngestOutcome, Kept, Made
from sidecar.engine.session import Session, SpawnedSession, Tail, View
from sidecar.server.engines.answer_checks import NonsenseAnswer
from sidecar.store.stored import SummaryNode
from sidecar.store.writes import AddSummary

if TYPE_CHECKING:
    from sidecar.engine.entry import Entry
    from sidecar.engine.guard.continuity import ViewRecord
    from sidecar.engine.guard.pinned import Pin
    from sidecar.engine.host import Report
    from sidecar.engine.session import History
    from sidecar.server.sessions.live import LiveSession
    from sidecar.server.sessions.timeline import SessionTimeline
    from sidecar.store.search import SearchQuery, SearchResult
    from sidecar.store.spawn import Spawn
    from sidecar.store.stored import NewMessage


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
        query = structs.replace(query, for_answer=True)
        return await self._live.searching.search(self._live.ref, query)


class Slot:
    """Where one message waits until all have come to be stored."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.message: NewMessage | None = None
        self.waits: asyncio.Future[None] = loop.create_future()
        self.outcome: asyncio.Future[IngestOutcome] = loop.create_future()

    async def store(self, message: NewMessage) -> IngestOutcome:
        """What became of the message, once all of them are stored."""
        self.message = message
        self.waits.set_result(None)
        return await self.outcome


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
        self.view: View | None = None
        """The view that the call is about."""
        self._shared: Collection[str] | None = None
        self.slot: Slot | None = None
        """Where the next message waits to be stored together with others."""
        self.stored: IngestOutcome | None = None
        """What became of the message that the engine has let the sidecar store."""

    def another(self) -> EngineSession:
        """A second handle of the same session."""
        return EngineSession(
            self.live, self.timeline, self._engine_id, agent_id=self.agent_id, session_key=self.session_key
        )

    def about(self, view: ViewRecord, shared: Collection[str] | None) -> None:
        """Let the call be about a view; `shared` is the engine's `shared_state`."""
        self.view = View(view.id, view.budget, view.begun > 0)
        self._shared = shared

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
        """A value that this engine kept for the session, or for the view that the call is about."""
        return await self.live.state(self._key(name))

    async def save_state(self, name: str, value: bytes | None) -> None:
        """Keep a small value durably."""
        await self.live.save_state(self._key(name, saving=True), value)

    def _key(self, name: str, *, saving: bool = False) -> str:
        """Where a value is kept."""
        own = self._prefix + name
        if self.view is None or (self._shared is not None and name in self._shared):
            return own
        names = self.live.view_names
        if saving:
            names.add(own)
        elif self._shared is None and own not in names:
            return own
        return self.live.view_key(self.view.id, own)

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


class OutsideTimeline:
    """A timeline that remembers what it has lent; see `sidecar.engine.session.Timeline`."""

    def __init__(self, timeline: SessionTimeline, *, copies: bool) -> None:
        """`copies` false hands out the entries themselves, to somebody who only reads them."""
        self._timeline = timeline
        self._copies = copies
        self._handed_out: dict[str, Entry] = {}

    async def tail(self, tokens: int) -> Tail:
        """The newest entries, going back until they hold more than `tokens` tokens."""
        entries, whole = await self._timeline.tail(tokens)
        return Tail(self._hand_out(entries), whole)

    async def opener(self, turn: int) -> Entry | None:
        """The user message that opened a turn."""
        entry = await self._timeline.opener(turn)
        return self._hand_out([entry])[0] if entry else None

    async def system(self) -> list[Entry]:
        """The system messages of the whole timeline."""
        return self._hand_out(await self._timeline.system())

    async def resolve(self, message_id: str) -> str | None:
        """The id that a message has on the timeline now."""
        return await self._timeline.resolve(message_id)

    async def before(self, message_id: str, limit: int, since: str | None = None) -> list[Entry]:
        """The `limit` entries in front of a message."""
        return self._hand_out(await self._timeline.before(message_id, limit, since))

    async def redeem(self, message_id: str) -> Entry:
        """Our own entry for a message of an answer.

        Raises:
            NonsenseAnswer: it is not on the timeline.
        """
        entry = self._handed_out.get(message_id) or await self._timeline.find(message_id)
        if entry is None:
            raise NonsenseAnswer(f"the answer holds message {message_id[:100]!r}, which this session has not")
        return entry

    def _hand_out(self, entries: Iterable[Entry]) -> list[Entry]:
        given: list[Entry] = []
        for entry in entries:
            self._handed_out[entry.message_id] = entry
            given.append(entry.copy() if self._copies else entry)
        return given


class OutsideSession:
    """A session for the length of one call; see `sidecar.engine.session.Session`."""

    def __init__(self, own: EngineSession, *, copies: bool) -> None:
        self.own = own
        """The handle that the session's own parts work with."""
        self.timeline = OutsideTimeline(own.timeline, copies=copies)

    @property
    def history(self) -> History:
        """The session's stored messages; each time it is read, its entries are made anew."""
        return self.own.history

    @property
    def session_id(self) -> str:
        """The host's key of the session."""
        return self.own.session_id

    @property
    def agent_id(self) -> str | None:
        """The agent that owns the session."""
        return self.own.agent_id

    @property
    def view(self) -> View | None:
        """The view that the call is about."""
        return self.own.view

    def calibrated(self, tokens: int) -> int:
        """What so many tokens of our own count in a budget."""
        return self.own.calibrated(tokens)

    def count(self, text: str) -> int:
        """Tokens of a text as the budget counts them."""
        return self.own.count(text)

    async def state(self, name: str) -> bytes | None:
        """A value that this engine kept for the session."""
        return await self.own.state(name)

    async def save_state(self, name: str, value: bytes | None) -> None:
        """Keep a small value durably.

        Raises:
            TypeError: the value is something else than bytes.
        """
        if not isinstance(cast(object, value), bytes | None):
            raise TypeError(f"the value of {name!r} is a {type(value).__name__}: it must be bytes, or None")
        await self.own.save_state(name, value)

    async def summaries(self) -> list[SummaryNode]:
        """The session's summaries by first position."""
        return await self.own.summaries()

    async def summary_nodes(self, node_ids: Sequence[str]) -> list[SummaryNode]:
        """The summaries of these ids."""
        return await self.own.summary_nodes(node_ids)

    async def pins(self) -> list[Pin]:
        """What is pinned."""
        return await self.own.pins()

    def report_to(self, report: Report) -> None:
        """Let `progress` go there from now on."""
        self.own.report_to(report)

    async def add_summary(self, node: SummaryNode, replaces: Sequence[str] = ()) -> bool:
        """Keep a summary in place of others; false where the history changed since the call began."""
        return await self.own.add_summary(node, replaces)

    async def spawn(self) -> SpawnedSession | None:
        """How the session was spawned by another one."""
        return await self.own.spawn()

    def progress(self, message: str, percentage: int | None = None) -> None:
        """Report progress to the host, if it asked for it."""
        self.own.progress(message, percentage)

    async def redeemed(self, assembly: Assembly) -> Assembly:
        """The same assembly with entries of our own.

        Raises:
            NonsenseAnswer: it holds a message that is not on the timeline.
        """
        items: list[Kept | Made] = []
        for item in assembly.items:
            if isinstance(item, Made):
                items.append(item)
            else:
                items.append(Kept(await self.timeline.redeem(item.entry.message_id), item.kind))
        return Assembly(
            items=items,
            system_prompt_addition=assembly.system_prompt_addition,
            user_message_append=assembly.user_message_append,
        )


def own_session(session: Session) -> EngineSession:
    """The handle of our own behind whatever an engine was given."""
    return session.own if isinstance(session, OutsideSession) else cast("EngineSession", session)
