"""What is done between turns: a compaction that is due, and what a model still owes."""

from __future__ import annotations

from sidecar.engine.calls import CompactOutcome, CompactRequest
from sidecar.engine.session import Session
from sidecar.engines.lossless.book import Book
from sidecar.engines.lossless.compaction import compact, current_tokens
from sidecar.engines.lossless.upgrading import debt_of, save_debt, upgrade
from sidecar.engines.lossless.writing import Task

AT_ONCE = 4
"""Owed summaries that are written after one turn."""


async def make_room(task: Task, quick: Task, session: Session, book: Book) -> None:
    """Compact before anything else where the hard threshold is passed."""
    budget = book.budget
    if await current_tokens(session, book, budget) <= budget * task.tuning.block_at:
        return
    outcome = await compact(task, quick, session, book, CompactRequest(budget=budget), "block", at_once=True)
    _tell(task, session, book, outcome)


async def tidy(task: Task, quick: Task, session: Session, book: Book) -> None:
    """Compact where the soft threshold is passed or something was only sketched; else pay debt."""
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
    _tell(task, session, book, outcome)


def _tell(task: Task, session: Session, book: Book, outcome: CompactOutcome) -> None:
    """Say what became of a compaction that nobody asked for; the same reason against it only once."""
    if outcome.compacted:
        task.host.tell_compacted(session)
        task.host.log("info", f"compacted from {outcome.tokens_before} to {outcome.tokens_after} tokens")
    elif outcome.reason and outcome.reason != book.declined:
        task.host.log("info", f"not compacted: {outcome.reason}")
    book.declined = "" if outcome.compacted else outcome.reason or ""


async def pay_debt(task: Task, session: Session, book: Book) -> None:
    """Let a model write some of the summaries that it failed to write before."""
    if task.summariser is task.host.extractive or book.shared.breaker.is_waiting:
        return
    owed = (await debt_of(session))[:AT_ONCE]
    if not owed:
        return
    async with book.shared.writing:
        done = await upgrade(task, session, book, owed)
        await book.shared.keep_mark(session)
    await save_debt(session, owed, done.owed)
