"""What is kept of a session: the outline of its summaries, and for each view what is sent of them."""

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
    """A summary as it is sent."""

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
    """The summaries that are sent, and where the messages begin that are sent in full."""

    segments: tuple[Segment, ...]
    cut: str
    """Id of the first message in full."""
    covered: int
    """The position in front of it."""
    version: str
    """The history that it was made for."""
    quality: str = ""
    """`sketch` where a part was only looked at here and there, to be mended soon."""

    def cost(self, count: Callable[[str], int]) -> int:
        """Tokens of all summaries as they are sent."""
        return sum(cost_of(segment, count) for segment in self.segments)


def segment_of(node: SummaryNode, written_ms: int = 0) -> Segment:
    """A node as it is sent."""
    return Segment(node.node_id, node.first_position, node.last_position, node.depth, node.text, written_ms)


def cost_of(segment: Segment, count: Callable[[str], int]) -> int:
    """Tokens that a summary takes as a message."""
    return framed(segment.shown, count, Mark("summary", segment.node_id))


def total(segments: Sequence[Segment], count: Callable[[str], int]) -> int:
    """Tokens of several."""
    return sum(cost_of(segment, count) for segment in segments)


def encode_view(view: View) -> bytes:
    """The view as it is kept."""
    return json.encode(view)


def decode_view(value: bytes) -> View:
    """A view that was kept."""
    return json.decode(value, type=View)


MOST = 256
"""Sessions that are remembered."""
VIEWS = 8
"""Views of a session that are remembered, and for which summaries made for them alone are kept."""
MARK_STATE = "forest"
"""Changes when the summaries do, for other processes on the same store."""
MADE_STATE = "made"
"""Which summaries were made for which view."""


class Shared:
    """What the views of one session share: its forest, and the bounds on calls to a model."""

    def __init__(self, tuning: Tuning) -> None:
        self.forest = Forest()
        self.beside: set[str] = set()
        """Ids of summaries that were made for one view."""
        self.guard = SpendGuard(tuning.model_calls, tuning.model_window_ms / 1000)
        self.breaker = CircuitBreaker(open_seconds=tuning.model_pause_ms / 1000)
        self.writing = asyncio.Lock()
        """Held while the forest grows."""
        self.growing: asyncio.Task[None] | None = None
        self.books: OrderedDict[str, Book] = OrderedDict()
        """By the view's id."""
        self._version = ""
        self._mark: bytes | None = None

    async def refresh(self, session: Session) -> None:
        """Take in what this or another process has kept since."""
        version, mark = session.history.version, await session.state(MARK_STATE)
        if version != self._version or mark != self._mark:
            nodes = await session.summaries()
            self.forest = Forest(outline_of(node) for node in nodes)
            self.beside = {node.node_id for node in nodes if node.node_id.startswith(VIEW)}
            self._version, self._mark = version, mark

    async def keep_node(self, session: Session, node: SummaryNode) -> bool:
        """Keep a node of the forest; false where the history changed meanwhile."""
        kept = await session.add_summary(node)
        if kept:
            self.forest.add(outline_of(node))
        return kept

    async def keep_mark(self, session: Session) -> None:
        """Let other processes see that the forest has grown."""
        covered = self.forest.covered
        mark = f"{len(self.forest)}.{covered}".encode()
        if mark != self._mark:
            self._mark = mark
            await session.save_state(MARK_STATE, mark)

    async def keep_beside(
        self, session: Session, view_id: str, used: set[str], made: list[SummaryNode]
    ) -> bool:
        """Keep summaries made for a view that uses these; those that no view uses any more go."""
        value = await session.state(MADE_STATE)
        by_view: dict[str, list[str]] = json.decode(value, type=dict[str, list[str]]) if value else {}
        by_view.pop(view_id, None)
        if names := sorted(name for name in used if name.startswith(VIEW)):
            by_view[view_id] = names
        while len(by_view) > VIEWS:
            del by_view[next(iter(by_view))]
        stale = sorted(self.beside - {name for names in by_view.values() for name in names})
        if made:
            added = await asyncio.gather(
                session.add_summary(made[0], stale), *(session.add_summary(node) for node in made[1:])
            )
            if not all(added):
                return False
            self.beside = (self.beside - set(stale)) | {node.node_id for node in made}
        if (encoded := json.encode(by_view) if by_view else None) != value:
            await session.save_state(MADE_STATE, encoded)
        return True


class Book:
    """One view of a session: what is sent there in front of the messages in full."""

    def __init__(self, shared: Shared, view_id: str) -> None:
        self.shared = shared
        self.view: View | None = None
        self.declined = ""
        """Why the newest compaction that nobody asked for did nothing."""
        self.budget = 0
        """The newest budget that the host named."""
        self.deciding = asyncio.Lock()
        """Held while another view is chosen and kept."""
        self.compacting: asyncio.Task[None] | None = None
        self._view_id = view_id
        self._view_kept: bytes | None = None
        self._cost: tuple[View | None, int, int] = (None, 0, 0)

    @property
    def forest(self) -> Forest:
        """The summaries of the session."""
        return self.shared.forest

    async def refresh(self, session: Session) -> None:
        """Take in what this or another process has kept since."""
        await self.shared.refresh(session)
        kept = await session.state(VIEW_STATE)
        if kept != self._view_kept:
            self.view = decode_view(kept) if kept else None
            self._view_kept = kept

    async def keep_view(self, session: Session, view: View | None, beside: list[SummaryNode]) -> bool:
        """Keep a view with the summaries made for it, in place of the one before and its own."""
        # A host may still look up what was shown last.
        used = {segment.node_id for each in (view, self.view) if each for segment in each.segments}
        if not await self.shared.keep_beside(session, self._view_id, used, beside):
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
    """The books of the sessions that were used last."""

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._sessions: OrderedDict[str, Shared] = OrderedDict()

    async def open(self, session: Session) -> Book:
        """The book of a session for the view that the call is about, up to date."""
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
