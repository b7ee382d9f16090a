"""Lends a session to an engine from outside, and takes its answer back as entries of our own.

What such an engine does to the objects that it is given changes nothing here, and it cannot put a message
into an answer that is not of the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from sidecar.engine.calls import Assembly, Kept, Made
from sidecar.engine.session import Session, Tail
from sidecar.server.answer_checks import NonsenseAnswer

if TYPE_CHECKING:
    from sidecar.engine.entry import Entry
    from sidecar.engine.guard.pinned import Pin
    from sidecar.engine.host import Report
    from sidecar.engine.session import History, SpawnedSession
    from sidecar.server.engine_session import EngineSession
    from sidecar.server.sessions.timeline import SessionTimeline
    from sidecar.store.stored import SummaryNode


class LentTimeline:
    """A timeline that remembers what it has lent; see `sidecar.engine.session.Timeline`."""

    def __init__(self, timeline: SessionTimeline, *, copies: bool) -> None:
        """`copies` false hands out the entries themselves, to somebody who only reads them."""
        self._timeline = timeline
        self._copies = copies
        self._lent: dict[str, Entry] = {}

    async def tail(self, tokens: int) -> Tail:
        """The newest entries, going back until they hold more than `tokens` tokens."""
        entries, whole = await self._timeline.tail(tokens)
        return Tail(self._lend(entries), whole)

    async def opener(self, turn: int) -> Entry | None:
        """The user message that opened a turn."""
        entry = await self._timeline.opener(turn)
        return self._lend([entry])[0] if entry else None

    async def system(self) -> list[Entry]:
        """The system messages of the whole timeline."""
        return self._lend(await self._timeline.system())

    async def resolve(self, message_id: str) -> str | None:
        """The id that a message has on the timeline now."""
        return await self._timeline.resolve(message_id)

    async def before(self, message_id: str, limit: int, since: str | None = None) -> list[Entry]:
        """The `limit` entries in front of a message."""
        return self._lend(await self._timeline.before(message_id, limit, since))

    async def redeem(self, message_id: str) -> Entry:
        """Our own entry for a message of an answer.

        Raises:
            NonsenseAnswer: it is not on the timeline.
        """
        entry = self._lent.get(message_id) or await self._timeline.find(message_id)
        if entry is None:
            raise NonsenseAnswer(f"the answer holds message {message_id[:100]!r}, which this session has not")
        return entry

    def _lend(self, entries: Iterable[Entry]) -> list[Entry]:
        given: list[Entry] = []
        for entry in entries:
            self._lent[entry.message_id] = entry
            given.append(entry.copy() if self._copies else entry)
        return given


class LentSession:
    """A session for the length of one call; see `sidecar.engine.session.Session`."""

    def __init__(self, own: EngineSession, *, copies: bool) -> None:
        self.own = own
        """The handle that the session's own parts work with."""
        self.timeline = LentTimeline(own.timeline, copies=copies)

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
    return session.own if isinstance(session, LentSession) else cast("EngineSession", session)
