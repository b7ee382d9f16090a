"""Compacts in one planned step: writes the summaries first, then switches to them atomically."""

from __future__ import annotations

import time
from typing import Any

from msgspec import Struct, json

from sidecar.engine.calls import CompactOutcome, CompactRequest
from sidecar.engine.session import Session
from sidecar.engine.window import whole_window
from sidecar.engines.lossless.book import Book, View
from sidecar.engines.lossless.forest import VIEW
from sidecar.engines.lossless.planning import Plan, plan
from sidecar.engines.lossless.writing import Task, Upgraded, debt_of, grow, save_debt, upgrade
from sidecar.engines.recollector import remark_of
from sidecar.messages.text import plain_text
from sidecar.recall.omissions import Kind, omissions

RECEIPTS_STATE = "receipts"
MOST = 20
"""Maximum receipts stored per session."""
EXAMINED, MOST_LEFT_OUT = 400, 8
"""How many of the newest summarised messages a receipt examines, and how many sentences it lists."""


class ReceiptNode(Struct, frozen=True, rename="camel"):
    """A summary sent from now on."""

    node_id: str
    depth: int
    first_position: int
    last_position: int
    tokens: int
    quality: str


class LeftOut(Struct, frozen=True, rename="camel"):
    """A sentence no longer sent or quoted in a summary; the tools still find it."""

    kind: Kind
    position: int
    turn_id: str
    text: str


class Receipt(Struct, frozen=True, kw_only=True, rename="camel"):
    """One compaction."""

    at_ms: int
    reason: str
    """`threshold`, `block`, `asked`, `forced`."""
    summarised_messages: int
    """Messages newly covered by summaries."""
    covered_messages: int
    """All messages covered by summaries."""
    kept_messages: int
    """Messages still sent in full."""
    first_kept_message_id: str
    tokens_before: int
    tokens_after: int
    model_summaries: int
    """Summaries that a model wrote for this compaction."""
    fallback_summaries: int
    """Summaries that a model failed to write and will be asked for again."""
    pins_kept: list[str]
    """Ids of the pins of the session: the guard keeps them in every answer."""
    nodes: list[ReceiptNode]
    left_out: list[LeftOut]
    """Statements in newly summarised messages that may be missed: instructions, then commitments, then
    decisions, newest first."""


async def keep_receipt(session: Session, receipt: Receipt) -> bytes:
    """Store the receipt, keeping only the newest ones; returns it as JSON."""
    kept = await session.state(RECEIPTS_STATE)
    older: list[Any] = json.decode(kept) if kept else []
    await session.save_state(RECEIPTS_STATE, json.encode([*older[-(MOST - 1) :], receipt]))
    return json.encode(receipt)


ROUNDS = 2
"""Rounds of writing with a model: its summaries are short, which makes room for finer ones."""
CHANGED = "the history changed while the summaries were written"
NOTHING_LEFT = "nothing left to compact: only what the model needs next is sent in full"


async def current_tokens(session: Session, book: Book, budget: int) -> int:
    """Tokens that would be sent without a budget, counted up to a few times the budget.

    Recalled text is not included: it is no reason to compact, because it goes away with the next cut.
    """
    cut = await session.timeline.resolve(book.view.cut) if book.view else None
    window = await whole_window(session.timeline, budget, cut)
    return window.tokens + (book.view_cost(session) if cut else 0)


async def compact(
    task: Task,
    quick: Task,
    session: Session,
    book: Book,
    request: CompactRequest,
    reason: str,
    *,
    at_once: bool = False,
    recalled: int = 0,
) -> CompactOutcome:
    """Reduce what is sent to the target; `quick` writes without a model.

    `recalled` is the tokens of recalled text, which a compaction drops. With `at_once` the compaction waits
    for nothing: messages without a summary are sampled, and summaries for a model to write become its debt.
    """
    started_from = book.view
    before = await current_tokens(session, book, request.budget) + recalled
    target = _target(task, request, before)
    if before <= target:
        fits = f"{before} tokens are within the target of {target}"
        return CompactOutcome(compacted=False, reason=fits, tokens_before=before)
    session.progress("selecting messages to summarise", 5)
    if not at_once and not await grow(quick, session, book):
        return CompactOutcome(compacted=False, reason=CHANGED, tokens_before=before)
    room = target if request.force else request.budget
    planned = await plan(quick, session, book, room, target)
    if planned.view is None or planned.tokens >= before:
        return CompactOutcome(compacted=False, reason=NOTHING_LEFT, tokens_before=before)
    upgraded = Upgraded(0, [], current=True)
    requested: set[str] = set()
    due = _to_write(task, book, planned.view)
    for number in range(0 if at_once else ROUNDS):
        done = 10 + 80 * number // ROUNDS
        more = await upgrade(task, session, book, due, (done, done + 80 // ROUNDS))
        upgraded = Upgraded(upgraded.by_model + more.by_model, upgraded.owed + more.owed, more.current)
        requested.update(due)
        if not more.current or not (more.by_model or task.instructions):
            break
        planned = await plan(quick, session, book, room, target)
        due = [node for node in _to_write(task, book, planned.view) if node not in requested]
    upgraded = upgraded._replace(owed=upgraded.owed + [node for node in due if node not in requested])
    if upgraded.current and not at_once and _stands_in(planned.view) and _has_model(task):
        session.progress("writing the combined summary", 90)
        planned = await plan(task, session, book, room, target)
        written = sum(node.quality != "deterministic" for node in planned.view_nodes)
        upgraded = upgraded._replace(by_model=upgraded.by_model + written)
    if not upgraded.current or planned.view is None or not await _swap(session, book, started_from, planned):
        return CompactOutcome(compacted=False, reason=CHANGED, tokens_before=before)
    await save_debt(session, (), upgraded.owed)
    receipt = await _receipt(session, book, planned, started_from, upgraded, before, reason)
    return CompactOutcome(
        compacted=True,
        summary="\n\n".join(segment.shown for segment in planned.view.segments),
        first_kept_message_id=planned.view.cut,
        tokens_before=before,
        tokens_after=planned.tokens,
        details=receipt,
    )


def _to_write(task: Task, book: Book, view: View | None) -> list[str]:
    """Ids of a view's summaries still to be written by a model, or rewritten because of instructions."""
    if view is None or not (_has_model(task) or task.instructions):
        return []
    shown = [book.forest.get(segment.node_id) for segment in view.segments]
    return [node.node_id for node in shown if node and (node.quality == "deterministic" or task.instructions)]


def _has_model(task: Task) -> bool:
    return task.summariser is not task.host.extractive


def _stands_in(view: View | None) -> bool:
    """Whether the view includes a summary made for it alone."""
    return view is not None and any(segment.node_id.startswith(VIEW) for segment in view.segments)


async def _swap(session: Session, book: Book, started_from: View | None, planned: Plan) -> bool:
    """Put the plan into force. Returns false if another plan or a rewind came first."""
    async with book.deciding:
        await book.refresh(session)
        if book.view != started_from or planned.view is None:
            return False
        if await session.timeline.resolve(planned.view.cut) is None:
            return False
        return await book.keep_view(session, planned.view, planned.view_nodes)


async def _receipt(
    session: Session,
    book: Book,
    planned: Plan,
    started_from: View | None,
    upgraded: Upgraded,
    before: int,
    reason: str,
) -> bytes:
    view = planned.view
    assert view is not None
    view_nodes = {node.node_id: node for node in planned.view_nodes}
    nodes: list[ReceiptNode] = []
    for segment in view.segments:
        known = book.forest.get(segment.node_id)
        made = view_nodes.get(segment.node_id)
        tokens = known.tokens if known else made.tokens if made else 0
        quality = known.quality if known else made.quality if made else ""
        nodes.append(
            ReceiptNode(segment.node_id, segment.depth, segment.first, segment.last, tokens, quality)
        )
    begin = started_from.covered if started_from else 0
    receipt = Receipt(
        at_ms=int(time.time() * 1000),
        reason=reason,
        summarised_messages=max(view.covered - begin, 0),
        covered_messages=view.covered,
        kept_messages=len(planned.window.entries),
        first_kept_message_id=view.cut,
        tokens_before=before,
        tokens_after=planned.tokens,
        model_summaries=upgraded.by_model,
        fallback_summaries=len(upgraded.owed),
        pins_kept=[pin.pin_id for pin in await session.pins()],
        nodes=nodes,
        left_out=await _left_out(session, begin, planned, view),
    )
    return await keep_receipt(session, receipt)


async def _left_out(session: Session, begin: int, planned: Plan, view: View) -> list[LeftOut]:
    """Statements that may be missed from messages after position `begin` that summaries now cover."""
    first = max(begin + 1, view.covered - EXAMINED + 1)
    covered = await session.history.read(first, view.covered)
    sent = [segment.text for segment in view.segments]
    sent += [plain_text(entry.reading) for entry in planned.window.entries]
    found = omissions(map(remark_of, covered), "\n".join(sent), MOST_LEFT_OUT)
    return [LeftOut(each.kind, each.remark.position, each.remark.turn_id, each.text) for each in found]


def _target(task: Task, request: CompactRequest, current: int) -> int:
    share = task.tuning.compact_to if request.target == "threshold" else 1.0
    target = int(request.budget * share)
    return min(target, current // 2) if request.force else target


AT_ONCE = 4
"""Maximum owed summaries written after one turn."""


async def make_room(task: Task, quick: Task, session: Session, book: Book) -> None:
    """Compact immediately if the hard threshold is exceeded."""
    budget = book.budget
    if await current_tokens(session, book, budget) <= budget * task.tuning.block_at:
        return
    outcome = await compact(task, quick, session, book, CompactRequest(budget=budget), "block", at_once=True)
    _report(task, session, book, outcome)


async def tidy(task: Task, quick: Task, session: Session, book: Book) -> None:
    """Compact if the soft threshold is exceeded or the view is a sketch; otherwise pay debt."""
    view, budget = book.view, book.budget
    is_full = await current_tokens(session, book, budget) > budget * task.tuning.compact_at
    is_sketched = view is not None and view.quality == "sketch" and book.forest.covered >= view.covered
    if not is_full and not is_sketched:
        await pay_debt(task, session, book)
        return
    async with task.host.working("Compacting in the background") as report:
        session.report_to(report)
        request = CompactRequest(budget=budget, force=is_sketched and not is_full)
        outcome = await compact(task, quick, session, book, request, "threshold")
    _report(task, session, book, outcome)


def _report(task: Task, session: Session, book: Book, outcome: CompactOutcome) -> None:
    """Report an automatic compaction; log a repeated reason for declining only once."""
    if outcome.compacted:
        task.host.tell_compacted(session)
        task.host.log("info", f"compacted from {outcome.tokens_before} to {outcome.tokens_after} tokens")
    elif outcome.reason and outcome.reason != book.declined:
        task.host.log("info", f"not compacted: {outcome.reason}")
    book.declined = "" if outcome.compacted else outcome.reason or ""


async def pay_debt(task: Task, session: Session, book: Book) -> None:
    """Let a model write some of the summaries that it failed to write earlier."""
    if task.summariser is task.host.extractive or book.shared.breaker.is_waiting:
        return
    owed = (await debt_of(session))[:AT_ONCE]
    if not owed:
        return
    async with book.shared.writing:
        done = await upgrade(task, session, book, owed)
        await book.shared.keep_mark(session)
    await save_debt(session, owed, done.owed)
