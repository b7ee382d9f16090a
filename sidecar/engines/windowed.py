"""Base class of the engines that send the newest part of a session in full, from a cut that rarely moves."""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol, TypeVar

from sidecar.engine.calls import (
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    Kept,
    Made,
    PreflightOutcome,
)
from sidecar.engine.contract import StoringEngine
from sidecar.engine.entry import Entry
from sidecar.engine.host import EngineHost
from sidecar.engine.session import Session
from sidecar.engine.window import SLACK, Window, cut_window, keep_window, tokens_of, whole_window
from sidecar.engines.recollector import MARGIN, SHARED, Recollections, Recollector

LOW, NEWEST = 0.25, 0.5
"""Shares of the room: the least that a cut leaves for the window, and the size up to which the newest turn
stays whole."""
FILLED = 0.6
"""Share of the budget filled by window and recalled text after a cut, leaving room for many messages."""
SMALL = 8000
"""Budget up to which newest messages that fill it, and need not be sent, are recalled in part instead."""
LEAST = 64
"""Minimum tokens that a compaction must free if a summary replaces them."""
CUT = "cut"


class Front(Protocol):
    """Where the window begins, and the content before it."""

    @property
    def cut(self) -> str:
        """Id of the first message sent in full."""
        ...

    @property
    def tokens(self) -> int:
        """Tokens of the content before the window; 0 if there is none."""
        ...

    @property
    def text(self) -> str | None:
        """The summary of messages not sent; `None` for engines without summaries."""
        ...


class Cut(NamedTuple):
    """Where the window begins, with no content before it."""

    cut: str
    tokens: int = 0
    text: str | None = None


F = TypeVar("F", bound=Front)


class WindowedEngine(StoringEngine, Generic[F]):
    """Sends the window, and earlier messages relevant to the prompt.

    Compacts by moving the cut; messages before it stay stored.
    """

    shared_state = SHARED

    def __init__(self, host: EngineHost) -> None:
        super().__init__(host)
        self.recollector = Recollector(host)

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """System messages, the content before the window, then the window with recalled text."""
        front = await self.front(session)
        cut = front.cut if front else None
        recalled = await self.recollector.open(session, request.prompt, cut)
        budget = self.most(request.budget)
        reserve = self.shown(front) + recalled.tokens
        window = await keep_window(session.timeline, budget, cut, reserve)
        too_much = window.tokens + reserve > budget
        moved = window.moved or too_much or self._exceeds(session, window, recalled, reserve, budget)
        if moved:
            window = await self._smaller(session, budget, cut, recalled)
        window, fewer = await self.fewer(session, window)
        if moved or fewer:
            recalled.forget()
            most = self.reserve(budget - tokens_of(window.system))
            front = await self.move(session, window, front, most)
        front, items = await self.settled(session, window, front, budget - recalled.tokens)
        await recalled.fill(window, budget, self.shown(front))
        await recalled.save()
        return Assembly(items=recalled.placed(items, window.entries))

    async def take_note(self, session: Session, entry: Entry) -> None:
        """Preprocess a message for the next answer."""
        await self.recollector.take_note(session, entry)

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Move the window to the target; `advance` provides the content before it."""
        front = await self.front(session)
        cut = front.cut if front else None
        recalled = await self.recollector.open(session, "", cut)
        window = await whole_window(session.timeline, request.budget, cut)
        before = window.tokens + (front.tokens if front else 0) + recalled.tokens
        target = self._target(request, before)
        if before <= target:
            return _declined(f"{before} tokens are within the target of {target}", before)
        reserve = min(self.reserve(request.budget), target // 2)
        room = (target if request.force else request.budget) - reserve
        smaller = await cut_window(session.timeline, window.entries, max(room, 0), max(target - reserve, 0))
        freed = before - smaller.tokens
        if smaller.tokens >= window.tokens + recalled.tokens or freed < min(reserve, LEAST):
            return _declined("only what the model needs next is left", before)
        advanced = await self.advance(session, smaller, front, request, min(reserve, freed - 1))
        if advanced is None:
            return _declined("the history changed while the summary was written", before)
        recalled.make_room()
        room = min(target, before - 1) - smaller.tokens - advanced.tokens
        await recalled.fill(smaller, request.budget, advanced.tokens, most=room)
        await recalled.save()
        return CompactOutcome(
            compacted=True,
            summary=advanced.text,
            first_kept_message_id=smaller.cut,
            tokens_before=before,
            tokens_after=smaller.tokens + advanced.tokens + recalled.tokens,
        )

    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        """Predict whether the current window fits; if not, recommend a compaction."""
        front = await self.front(session)
        cut = front.cut if front else None
        recalled = await self.recollector.open(session, request.prompt, cut)
        window = await whole_window(session.timeline, request.budget, cut)
        tokens = window.tokens + (front.tokens if front else 0) + recalled.tokens
        fits = tokens <= request.budget
        return PreflightOutcome(fits=fits, estimated_tokens=tokens, action="none" if fits else "compact")

    async def front(self, session: Session) -> F | None:
        """Where the window begins; `None` if nothing was cut, or if the cut is gone."""
        raise NotImplementedError

    async def move(self, session: Session, window: Window, front: F | None, most: int) -> F | None:
        """Store and return the content before a smaller window, at most `most` tokens, without a model."""
        raise NotImplementedError

    async def advance(
        self, session: Session, window: Window, front: F | None, request: CompactRequest, most: int
    ) -> F | None:
        """The same in a compaction, which may use a model; `None` if that was not possible."""
        raise NotImplementedError

    async def settled(
        self, session: Session, window: Window, front: F | None, room: int
    ) -> tuple[F | None, list[Kept | Made]]:
        """What is sent before the window, within `room` tokens including it: at least the system messages."""
        del session, room
        return front, [Kept(entry, "system") for entry in window.system]

    async def fewer(self, session: Session, window: Window) -> tuple[Window, bool]:
        """The window within limits other than tokens, and whether they moved its start."""
        del session
        return window, False

    def shown(self, front: F | None) -> int:
        """Tokens of the content before the window in the next answer."""
        return front.tokens if front else 0

    def most(self, budget: int) -> int:
        """Maximum tokens of a budget to use."""
        return budget

    def compaction_share(self) -> float:
        """Share of the budget filled after a compaction to `threshold`."""
        raise NotImplementedError

    def filled_share(self) -> float:
        """Share of the budget filled after the window moves."""
        return SLACK

    def reserve(self, room: int) -> int:
        """Tokens of the room reserved for the content before the window."""
        del room
        return 0

    async def _smaller(
        self, session: Session, budget: int, cut: str | None, recalled: Recollections
    ) -> Window:
        """A smaller window that leaves room for recalled text and for new messages."""
        timeline, measure = session.timeline, self.recollector.measure
        share = self.recollector.share
        newest, _ = await timeline.tail(2 * budget)
        start = next((i for i, entry in enumerate(newest) if entry.message_id == cut), 0)
        system = tokens_of(await timeline.system())
        reserve = self.reserve(budget - system)
        room = budget - reserve
        target = int(budget * self.filled_share()) - reserve
        if share:
            free = max(int(budget * MARGIN) - system, 0)
            filled = min(target, int(budget * FILLED) - reserve)
            target = system + max(filled - system - recalled.wanted(free), int(free * LOW))
            room = max(target, system + int(free * NEWEST))
        window = await cut_window(timeline, newest[start:], max(room, 0), max(target, 0))
        if not share:
            return window
        large = max((budget * MARGIN - system) * NEWEST, target - system)
        excess = measure.excess([*window.system, *window.entries])
        if excess and window.tokens + excess > target:
            room, target = room - excess, target - excess
            window = await cut_window(timeline, newest[start:], max(room, 0), max(target, 0))
        if not recalled.is_sent_apart or not newest or budget > SMALL:
            return window
        if tokens_of(window.entries) + measure.excess(window.entries) > large:
            window = window._replace(entries=[], cut=newest[-1].message_id)
        return window

    def _exceeds(
        self, session: Session, window: Window, recalled: Recollections, spent: int, budget: int
    ) -> bool:
        """Whether a view's first answer exceeds the budget for a host that estimates tokens by characters.

        In later answers, a cut for such a host would cost the cached prefix.
        """
        if not self.recollector.share or session.view is None or session.view.answered:
            return False
        texts = recalled.texts
        excess = self.recollector.measure.excess([*window.system, *window.entries], texts, recalled.tokens)
        return window.tokens + spent + excess > budget

    def _target(self, request: CompactRequest, current: int) -> int:
        """Tokens that a compaction should leave; with `force`, at most half of the current ones."""
        share = self.compaction_share() if request.target == "threshold" else 1.0
        target = int(request.budget * share)
        return min(target, current // 2) if request.force else target


class PlainWindow(WindowedEngine[Cut]):
    """Sends the window without a summary of earlier messages."""

    async def front(self, session: Session) -> Cut | None:
        """Where the window begins; `None` if nothing was cut, or if the cut is gone."""
        kept = (await session.state(CUT) or b"").decode()
        cut = await session.timeline.resolve(kept) if kept else None
        if cut and cut != kept:
            await session.save_state(CUT, cut.encode())
        return Cut(cut) if cut else None

    async def move(self, session: Session, window: Window, front: Cut | None, most: int) -> Cut | None:
        """Store where the window begins; messages that leave it stay stored."""
        del most
        if not window.entries:  # applies to this answer only
            return front
        await session.save_state(CUT, (window.cut or "").encode())
        return Cut(window.cut or "")

    async def advance(
        self, session: Session, window: Window, front: Cut | None, request: CompactRequest, most: int
    ) -> Cut | None:
        """Move the window; messages that leave it stay stored."""
        del request
        return await self.move(session, window, front, most)


def _declined(reason: str, tokens: int) -> CompactOutcome:
    return CompactOutcome(compacted=False, reason=reason, tokens_before=tokens)
