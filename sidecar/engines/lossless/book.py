"""The state of a session: the outline of its summaries, and for each view the summaries it sends."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence

from msgspec import Struct, json

from sidecar.engine.calls import Made
from sidecar.engine.session import Session
from sidecar.engines.defaults import Tuning
from sidecar.engines.lossless.forest import VIEW, Forest, outline_of
from sidecar.engines.recollector import framed
from sidecar.messages.contract import Mark
from sidecar.store.stored import SummaryNode
from sidecar.summarize.limits import CircuitBreaker, SpendGuard

VIEW_STATE = "view"


class Segment(Struct, frozen=True, array_like=True):
    """A summary as sent."""

    node_id: str
    first: int
    last: int
    depth: int
    text: str
    written_ms: int

    @property
    def shown(self) -> str:
        """The text with its heading."""
        return f"[summary {self.node_id} of messages {self.first}-{self.last}]\n{self.text}"

    def as_message(self) -> Made:
        """The summary as an item of an answer."""
        return Made(
            role="user",
            kind="summary",
            ref=self.node_id,
            text=self.shown,
            timestamp_ms=self.written_ms,
            covers=(self.first, self.last),
        )


class View(Struct, frozen=True, kw_only=True):
    """The summaries sent, and where the messages sent in full begin."""

    segments: tuple[Segment, ...]
    cut: str
    """Id of the first message sent in full."""
    covered: int
    """The last position covered by summaries."""
    version: str
    """Version of the history that it was planned for."""
    quality: str = ""
    """`sketch` if part of it was summarised from samples only, to be redone soon."""

    def cost(self, count: Callable[[str], int]) -> int:
        """Total tokens of the summaries as sent."""
        return sum(cost_of(segment, count) for segment in self.segments)


def segment_of(node: SummaryNode, written_ms: int = 0) -> Segment:
    """A node as sent."""
    return Segment(node.node_id, node.first_position, node.last_position, node.depth, node.text, written_ms)


def cost_of(segment: Segment, count: Callable[[str], int]) -> int:
    """Tokens of a summary as a message."""
    return framed(segment.shown, count, Mark("summary", segment.node_id))


def total(segments: Sequence[Segment], count: Callable[[str], int]) -> int:
    """Total tokens of several summaries as messages."""
    return sum(cost_of(segment, count) for segment in segments)


def encode_view(view: View) -> bytes:
    """The view, encoded for storage."""
    return json.encode(view)


def decode_view(value: bytes) -> View:
    """Decode a stored view."""
    return json.decode(value, type=View)


MOST = 256
"""Maximum sessions kept in memory."""
VIEWS = 8
"""Maximum views per session kept in memory, and whose own summaries are stored."""
MARK_STATE = "forest"
"""Changes whenever the summaries do, to notify other processes on the same store."""
MADE_STATE = "made"
"""Maps each view to the summaries made for it."""


class Shared:
    """State shared by the views of a session: its forest, and the limits on model calls."""

    def __init__(self, tuning: Tuning) -> None:
        self.forest = Forest()
        self.view_nodes: set[str] = set()
        """Ids of summaries made for a single view."""
        self.guard = SpendGuard(tuning.model_calls, tuning.model_window_ms / 1000)
        self.breaker = CircuitBreaker(open_seconds=tuning.model_pause_ms / 1000)
        self.writing = asyncio.Lock()
        """Held while the forest grows."""
        self.growing: asyncio.Task[None] | None = None
        self.books: OrderedDict[str, Book] = OrderedDict()
        """Books by view id."""
        self._version = ""
        self._mark: bytes | None = None

    async def refresh(self, session: Session) -> None:
        """Load changes stored by this or another process."""
        version, mark = session.history.version, await session.state(MARK_STATE)
        if version != self._version or mark != self._mark:
            nodes = await session.summaries()
            self.forest = Forest(outline_of(node) for node in nodes)
            self.view_nodes = {node.node_id for node in nodes if node.node_id.startswith(VIEW)}
            self._version, self._mark = version, mark

    async def keep_node(self, session: Session, node: SummaryNode) -> bool:
        """Store a node of the forest. Returns false if the history changed meanwhile."""
        kept = await session.add_summary(node)
        if kept:
            self.forest.add(outline_of(node))
        return kept

    async def keep_mark(self, session: Session) -> None:
        """Store the mark by which other processes notice that the forest has grown."""
        covered = self.forest.covered
        mark = f"{len(self.forest)}.{covered}".encode()
        if mark != self._mark:
            self._mark = mark
            await session.save_state(MARK_STATE, mark)

    async def keep_view_nodes(
        self, session: Session, view_id: str, used: set[str], made: list[SummaryNode]
    ) -> bool:
        """Store `made`, summaries for a view that uses the ids in `used`; remove those no view uses any more.

        Returns false if the history changed meanwhile.
        """
        value = await session.state(MADE_STATE)
        by_view: dict[str, list[str]] = json.decode(value, type=dict[str, list[str]]) if value else {}
        by_view.pop(view_id, None)
        if names := sorted(name for name in used if name.startswith(VIEW)):
            by_view[view_id] = names
        while len(by_view) > VIEWS:
            del by_view[next(iter(by_view))]
        stale = sorted(self.view_nodes - {name for names in by_view.values() for name in names})
        if made:
            added = await asyncio.gather(
                session.add_summary(made[0], stale), *(session.add_summary(node) for node in made[1:])
            )
            if not all(added):
                return False
            self.view_nodes = (self.view_nodes - set(stale)) | {node.node_id for node in made}
        if (encoded := json.encode(by_view) if by_view else None) != value:
            await session.save_state(MADE_STATE, encoded)
        return True


class Book:
    """One view of a session: the summaries sent before the messages in full."""

    def __init__(self, shared: Shared, view_id: str) -> None:
        self.shared = shared
        self.view: View | None = None
        self.declined = ""
        """Why the last automatic compaction did nothing."""
        self.budget = 0
        """The last budget that the host gave."""
        self.deciding = asyncio.Lock()
        """Held while a new choice of summaries is made and stored."""
        self.compacting: asyncio.Task[None] | None = None
        self._view_id = view_id
        self._view_kept: bytes | None = None
        self._cost: tuple[View | None, int, int] = (None, 0, 0)

    @property
    def forest(self) -> Forest:
        """The summaries of the session."""
        return self.shared.forest

    async def refresh(self, session: Session) -> None:
        """Load changes stored by this or another process."""
        await self.shared.refresh(session)
        kept = await session.state(VIEW_STATE)
        if kept != self._view_kept:
            self.view = decode_view(kept) if kept else None
            self._view_kept = kept

    async def keep_view(self, session: Session, view: View | None, view_nodes: list[SummaryNode]) -> bool:
        """Store a view and its own summaries in place of the previous ones."""
        # A host may still look up summaries of the previous view.
        used = {segment.node_id for each in (view, self.view) if each for segment in each.segments}
        if not await self.shared.keep_view_nodes(session, self._view_id, used, view_nodes):
            return False
        value = encode_view(view) if view else None
        self.view, self._view_kept = view, value
        await session.save_state(VIEW_STATE, value)
        return True

    def view_cost(self, session: Session) -> int:
        """Tokens of the view's summaries."""
        if self.view is None:
            return 0
        factor = session.calibrated(1_000_000)
        if self._cost[0] is not self.view or self._cost[1] != factor:
            self._cost = (self.view, factor, self.view.cost(session.count))
        return self._cost[2]


class Books:
    """The books of the most recently used sessions."""

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._sessions: OrderedDict[str, Shared] = OrderedDict()

    async def open(self, session: Session) -> Book:
        """The up-to-date book of a session, for the view that the call is about."""
        shared = self._sessions.get(session.session_id)
        if shared is None:
            shared = self._sessions[session.session_id] = Shared(self._tuning)
        self._sessions.move_to_end(session.session_id)
        if len(self._sessions) > MOST:
            self._sessions.popitem(last=False)
        view_id = session.view.id if session.view else ""
        book = shared.books.get(view_id)
        if book is None:
            book = shared.books[view_id] = Book(shared, view_id)
        shared.books.move_to_end(view_id)
        if len(shared.books) > VIEWS:
            shared.books.popitem(last=False)
        await book.refresh(session)
        return book
