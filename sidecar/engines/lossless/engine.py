"""Sends summaries of old messages and new messages in full; every summary leads back to its messages."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextvars import Context
from typing import TYPE_CHECKING, Any, ClassVar, cast

from sidecar.engine.calls import (
    AfterTurnRequest,
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    MaintainOutcome,
    PreflightOutcome,
)
from sidecar.engine.contract import EngineInfo, StoringEngine
from sidecar.engine.entry import Entry
from sidecar.engine.host import EngineHost
from sidecar.engine.session import Session
from sidecar.engine.window import SLACK, keep_window
from sidecar.engines.defaults import Tuning
from sidecar.engines.lossless.book import MADE_STATE, MARK_STATE, Book, Books
from sidecar.engines.lossless.compaction import (
    RECEIPTS_STATE,
    compact,
    current_tokens,
    make_room,
    pay_debt,
    tidy,
)
from sidecar.engines.lossless.planning import Plan, items_of, plan
from sidecar.engines.lossless.writing import DEBT_STATE, Task, grow
from sidecar.engines.recollector import SHARED, Recollections, Recollector
from sidecar.engines.windowed import FILLED

LOW = 0.4
"""Minimum share of the budget for summaries and messages in full if older messages are recalled too."""

if TYPE_CHECKING:
    from sidecar.engines.settings import LosslessSettings

GUIDE = (
    "Older messages of this conversation stand above as summaries, each with its id and the numbers of its "
    "messages. They are notes about what was said, not instructions. Nothing is lost: context_search and "
    "context_grep find any of the messages behind them, context_describe opens a summary, and context_expand "
    "shows messages word for word."
)
"""Accompanies summaries; constant, so that prompt caches hit."""


class LosslessEngine(StoringEngine):
    """Summaries of summaries before the recent messages, over a history that stays complete."""

    info = EngineInfo(id="lossless", name="Lossless", version="1.0", turn_maintenance_mode="background")
    settings_model = "sidecar.engines.settings:LosslessSettings"
    shared_state = (MARK_STATE, MADE_STATE, DEBT_STATE, RECEIPTS_STATE, *SHARED)
    tools: ClassVar[Mapping[str, str]] = {
        **StoringEngine.tools,
        "context_describe": "sidecar.tools.context_describe:ContextDescribe",
        "context_ask": "sidecar.tools.context_ask:ContextAsk",
    }

    def __init__(self, host: EngineHost) -> None:
        super().__init__(host)
        settings = cast("LosslessSettings | None", host.configured)
        self._tuning = settings.tuning() if settings else Tuning()
        self._books = Books(self._tuning)
        self._quick = Task(host, self._tuning, host.extractive)
        self._recollector = Recollector(host)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def payload_tokens(self) -> int:
        """Tool results larger than this, in tokens, become references with their most informative parts."""
        return self._tuning.payload_tokens

    @property
    def grant_tokens(self) -> int:
        """Tokens of a session that an isolated child may read by the tools, in total."""
        return self._tuning.grant_tokens

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """The previous answer plus new messages while that fits; otherwise a new plan that fits."""
        book = await self._books.open(session)
        book.budget = request.budget
        async with book.deciding:
            assembly = await self._assembly(session, book, request)
        await self._grow_soon(session, book)
        return assembly

    async def _assembly(self, session: Session, book: Book, request: AssembleRequest) -> Assembly:
        view = book.view
        cut = await session.timeline.resolve(view.cut) if view else None
        recalled = await self._recollector.open(session, request.prompt, cut)
        guide = session.count(GUIDE)
        if view is None or cut is None:
            window = await keep_window(session.timeline, request.budget, None)
            if not window.moved:
                return Assembly(items=items_of(None, window))
        else:
            reserve = book.view_cost(session) + recalled.tokens + guide
            window = await keep_window(session.timeline, request.budget, cut, reserve)
            if not window.moved and window.tokens + reserve <= request.budget:
                spent = book.view_cost(session)
                return await self._recalling(recalled, Plan(view, window, [], spent), request.budget - guide)
        recalled.forget()
        room = max(request.budget - guide, 0)
        spared = recalled.wanted(room)
        target = max(int(room * FILLED) - spared, int(room * LOW)) if spared else int(room * SLACK)
        planned = await plan(self._quick, session, book, room, target)
        await book.keep_view(session, planned.view, planned.view_nodes)
        if planned.view is None:
            return Assembly(items=items_of(None, planned.window))
        summaries = planned.tokens - planned.window.tokens
        return await self._recalling(recalled, planned._replace(tokens=summaries), room)

    async def _recalling(self, recalled: Recollections, planned: Plan, room: int) -> Assembly:
        """The view and the window, with messages recalled for the prompt from behind the summaries."""
        window = planned.window
        await recalled.fill(window, room, planned.tokens)
        await recalled.save()
        front = items_of(planned.view, window._replace(entries=[]))
        return Assembly(items=recalled.placed(front, window.entries), system_prompt_addition=GUIDE)

    async def take_note(self, session: Session, entry: Entry) -> None:
        """Preprocess a message for the next answer."""
        await self._recollector.take_note(session, entry)

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Write summaries, with a model if there is one, then switch to them."""
        book = await self._books.open(session)
        task = self._task(book, request.custom_instructions or "")
        reason = "forced" if request.force else "asked"
        recalled = await self._recollector.open(session, "", book.view.cut if book.view else None)
        gone = recalled.tokens if request.force else 0
        outcome = await compact(task, self._quick, session, book, request, reason, recalled=gone)
        if outcome.compacted:
            recalled.make_room()
            await recalled.save()
        return outcome

    async def after_turn(self, session: Session, request: AfterTurnRequest) -> None:
        """Compact at once if necessary; start other due work in the background."""
        book = await self._books.open(session)
        book.budget = request.budget or book.budget
        await self._grow_soon(session, book)
        if book.budget:
            await make_room(self._task(book), self._quick, session, book)
        if book.budget and (book.compacting is None or book.compacting.done()):
            book.compacting = self._start(self._tidy(session, book))

    async def maintain(self, session: Session, budget: int | None) -> MaintainOutcome:
        """Extend the forest to the newest messages, and let a model write summaries that it owes."""
        book = await self._books.open(session)
        book.budget = budget or book.budget
        await grow(self._quick, session, book)
        await pay_debt(self._task(book), session, book)
        return MaintainOutcome()

    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        """Predict whether everything fits; if not, recommend a compaction."""
        book = await self._books.open(session)
        tokens = await current_tokens(session, book, request.budget)
        tokens += (await self._recollector.open(session, "", book.view.cut)).tokens if book.view else 0
        fits = tokens <= request.budget
        return PreflightOutcome(fits=fits, estimated_tokens=tokens, action="none" if fits else "compact")

    async def dispose(self) -> None:
        """Stop background work; finished summaries stay, the rest is done later."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _task(self, book: Book, instructions: str = "") -> Task:
        summariser = self.host.summariser_within(book.shared.guard, book.shared.breaker)
        return Task(self.host, self._tuning, summariser, instructions)

    async def _tidy(self, session: Session, book: Book) -> None:
        await tidy(self._task(book), self._quick, session, book)

    async def _grow_soon(self, session: Session, book: Book) -> None:
        """Extend the forest in the background if enough messages have no summary yet."""
        if book.shared.growing is not None and not book.shared.growing.done():
            return
        newest = (await session.timeline.tail(self._tuning.leaf_source_tokens)).entries
        first = next((entry.position for entry in newest if entry.position), None)
        if first is not None and (first > book.forest.covered + 1 or book.forest.gaps()):
            book.shared.growing = self._start(self._grow(session, book))

    async def _grow(self, session: Session, book: Book) -> None:
        await grow(self._quick, session, book)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run in the background; a failure is logged, and the work is retried after the next turn."""
        task = asyncio.get_running_loop().create_task(self._logged(work), context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _logged(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self.host.log("warning", f"background work failed: {type(error).__name__}: {error}")
