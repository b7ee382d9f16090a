"""What the engine remembers of the sessions in use; everything in it can be read anew from the store."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from sidecar.engine.session import Session
from sidecar.engines.lossless.defaults import Tuning
from sidecar.engines.lossless.forest import VIEW, Forest, outline_of
from sidecar.engines.lossless.view import VIEW_STATE, View, decode_view, encode_view
from sidecar.store.stored import SummaryNode
from sidecar.summarize.limits import CircuitBreaker, SpendGuard

MOST = 256
"""Sessions that are remembered."""
MARK_STATE = "forest"
"""Changes when the summaries do, for other processes on the same store."""


class Book:
    """One session: its forest, its view, the bounds on calls to a model."""

    def __init__(self, tuning: Tuning) -> None:
        self.forest = Forest()
        self.view: View | None = None
        self.beside: set[str] = set()
        """Ids of summaries that were made for one view."""
        self.declined = ""
        """Why the newest compaction that nobody asked for did nothing."""
        self.budget = 0
        """The newest budget that the host named."""
        self.guard = SpendGuard(tuning.model_calls, tuning.model_window_ms / 1000)
        self.breaker = CircuitBreaker(open_seconds=tuning.model_pause_ms / 1000)
        self.writing = asyncio.Lock()
        """Held while the forest grows."""
        self.deciding = asyncio.Lock()
        """Held while another view is chosen and kept."""
        self.growing: asyncio.Task[None] | None = None
        self.compacting: asyncio.Task[None] | None = None
        self._version = ""
        self._mark: bytes | None = None
        self._view_kept: bytes | None = None
        self._cost: tuple[View | None, int, int] = (None, 0, 0)

    async def refresh(self, session: Session) -> None:
        """Take in what this or another process has kept since."""
        version, mark = session.history.version, await session.state(MARK_STATE)
        if version != self._version or mark != self._mark:
            nodes = await session.summaries()
            self.forest = Forest(outline_of(node) for node in nodes)
            self.beside = {node.node_id for node in nodes if node.node_id.startswith(VIEW)}
            self._version, self._mark = version, mark
        kept = await session.state(VIEW_STATE)
        if kept != self._view_kept:
            self.view = decode_view(kept) if kept else None
            self._view_kept = kept

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

    async def keep_view(self, session: Session, view: View | None, beside: list[SummaryNode]) -> bool:
        """Keep a view with the summaries made for it, in place of the one before and its own."""
        used = {segment.node_id for segment in view.segments} if view else set[str]()
        shown = {segment.node_id for segment in self.view.segments} if self.view else set[str]()
        stale = sorted(self.beside - used - shown)  # a host may still look up what was shown last
        if beside:
            added = await asyncio.gather(
                session.add_summary(beside[0], stale), *(session.add_summary(node) for node in beside[1:])
            )
            if not all(added):
                return False
            self.beside = (self.beside & (used | shown)) | {node.node_id for node in beside}
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
        self._books: OrderedDict[str, Book] = OrderedDict()

    async def open(self, session: Session) -> Book:
        """The book of a session, up to date."""
        book = self._books.get(session.session_id)
        if book is None:
            book = self._books[session.session_id] = Book(self._tuning)
        self._books.move_to_end(session.session_id)
        if len(self._books) > MOST:
            self._books.popitem(last=False)
        await book.refresh(session)
        return book

    def all(self) -> list[Book]:
        """Every book."""
        return list(self._books.values())
