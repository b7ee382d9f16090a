"""Base of the engines that send the newest part of a session in full, from a cut that rarely moves."""

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
"""Shares of the room: what the window is cut down to at least, and up to which the newest turn is not cut
inside."""
FILLED = 0.6
"""Share of the budget that window and recollection fill after a cut: what comes next has room for long."""
SMALL = 8000
"""Budget up to which the newest messages are recalled in part if they fill it and need not be sent."""
LEAST = 64
"""Tokens that a compaction has to free where a summary takes their place."""
CUT = "cut"


class Front(Protocol):
    """Where the window begins, and what stands in front of it."""

    @property
    def cut(self) -> str:
        """Id of the first message that is sent in full."""
        ...

    @property
    def tokens(self) -> int:
        """Tokens of what stands in front of the window; 0 where nothing does."""
        ...

    @property
    def text(self) -> str | None:
        """The summary of what is not sent; `None` for engines that write none."""
        ...


class Cut(NamedTuple):
    """Where the window begins; nothing stands in front of it."""

    cut: str
    tokens: int = 0
    text: str | None = None


F = TypeVar("F", bound=Front)


class WindowedEngine(StoringEngine, Generic[F]):
    """Sends the window, with what the prompt calls for of what is in front of it.

    Compacts by moving the cut; what is in front of it stays stored.
    """

    shared_state = SHARED

    def __init__(self, host: EngineHost) -> None:
        super().__init__(host)
        self.recollector = Recollector(host)

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """System messages, what stands in front of the window, then the window with what was recalled."""
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
        """Reads what the next answer is likely to need of a message."""
        await self.recollector.take_note(session, entry)

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Moves the window to the target, and lets `advance` say what stands in front of it."""
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
        """Whether the window fits as it is; a compaction makes it fit."""
        front = await self.front(session)
        cut = front.cut if front else None
        recalled = await self.recollector.open(session, request.prompt, cut)
        window = await whole_window(session.timeline, request.budget, cut)
        tokens = window.tokens + (front.tokens if front else 0) + recalled.tokens
        fits = tokens <= request.budget
        return PreflightOutcome(fits=fits, estimated_tokens=tokens, action="none" if fits else "compact")

    async def front(self, session: Session) -> F | None:
        """Where the window begins; `None` where nothing was cut, or the cut is not there any more."""
        raise NotImplementedError

    async def move(self, session: Session, window: Window, front: F | None, most: int) -> F | None:
        """What stands in front of a smaller window, in `most` tokens, kept already; written at once."""
        raise NotImplementedError

    async def advance(
        self, session: Session, window: Window, front: F | None, request: CompactRequest, most: int
    ) -> F | None:
        """The same in a compaction, which may ask a model; `None` where that was not possible."""
        raise NotImplementedError

    async def settled(
        self, session: Session, window: Window, front: F | None, room: int
    ) -> tuple[F | None, list[Kept | Made]]:
        """What is sent in front of the window, in `room` tokens with it: the system messages at least."""
        del session, room
        return front, [Kept(entry, "system") for entry in window.system]

    async def fewer(self, session: Session, window: Window) -> tuple[Window, bool]:
        """The window within other bounds than tokens, and whether they made it begin elsewhere."""
        del session
        return window, False

    def shown(self, front: F | None) -> int:
        """Tokens that the next answer spends on what stands in front of the window."""
        return front.tokens if front else 0

    def most(self, budget: int) -> int:
        """Tokens of a budget that are used at most."""
        return budget

    def compaction_share(self) -> float:
        """Share of the budget that a compaction to `threshold` leaves."""
        raise NotImplementedError

    def filled_share(self) -> float:
        """Share of the budget that is filled once the window has to move."""
        return SLACK

    def reserve(self, room: int) -> int:
        """Tokens of some room that are kept free for what stands in front of the window."""
        del room
        return 0

    async def _smaller(
        self, session: Session, budget: int, cut: str | None, recalled: Recollections
    ) -> Window:
        """A window from which on there is room for what is recalled, and for messages to come."""
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
        """Whether a host that counts characters would find more than the budget in a view's first answer.

        Later, a cut for the sake of such a host would cost the prefix.
        """
        if not self.recollector.share or session.view is None or session.view.answered:
            return False
        texts = recalled.texts
        excess = self.recollector.measure.excess([*window.system, *window.entries], texts, recalled.tokens)
        return window.tokens + spent + excess > budget

    def _target(self, request: CompactRequest, current: int) -> int:
        """Tokens that a compaction should leave; with `force`, always less than there are now."""
        share = self.compaction_share() if request.target == "threshold" else 1.0
        target = int(request.budget * share)
        return min(target, current // 2) if request.force else target


class PlainWindow(WindowedEngine[Cut]):
    """Sends the window alone: nothing is written that stands for what is in front of it."""

    async def front(self, session: Session) -> Cut | None:
        """Where the window begins; `None` where nothing was cut, or the cut is not there any more."""
        kept = (await session.state(CUT) or b"").decode()
        cut = await session.timeline.resolve(kept) if kept else None
        if cut and cut != kept:
            await session.save_state(CUT, cut.encode())
        return Cut(cut) if cut else None

    async def move(self, session: Session, window: Window, front: Cut | None, most: int) -> Cut | None:
        """Keeps where the window begins; what leaves it stays stored."""
        del most
        if not window.entries:  # which holds for this answer alone
            return front
        await session.save_state(CUT, (window.cut or "").encode())
        return Cut(window.cut or "")

    async def advance(
        self, session: Session, window: Window, front: Cut | None, request: CompactRequest, most: int
    ) -> Cut | None:
        """Moves the window; what leaves it stays stored."""
        del request
        return await self.move(session, window, front, most)


def _declined(reason: str, tokens: int) -> CompactOutcome:
    return CompactOutcome(compacted=False, reason=reason, tokens_before=tokens)
