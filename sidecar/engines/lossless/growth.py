"""Lets the forest grow: summaries for messages that have none, then summaries of summaries."""

from __future__ import annotations

from sidecar.engine.entry import Entry
from sidecar.engine.session import Session
from sidecar.engines.lossless.book import Book
from sidecar.engines.lossless.forest import Gap
from sidecar.engines.lossless.runs import next_run
from sidecar.engines.lossless.writing import Task, condensed, leaf

SPARED = 2
"""Newest summaries of a depth that stay fine."""


async def grow(task: Task, session: Session, book: Book) -> bool:
    """Summarise what is older than the newest run, without a model; false where the history changed."""
    async with book.writing:
        while True:
            if not await _fill_gap(task, session, book):
                return False
            if await _condense(task, session, book):
                continue
            run = await next_run(
                session, book.forest.covered + 1, session.history.count, task.tuning.leaf_source_tokens
            )
            if not run or run[-1].position == session.history.count:
                break
            if not await book.keep_node(session, await leaf(task, run)):
                return False
        await book.keep_mark(session)
    return True


async def _fill_gap(task: Task, session: Session, book: Book) -> bool:
    """Summarise messages that were put in between summaries."""
    for gap in book.forest.gaps():
        first = gap.first
        while first <= gap.last:
            run = await _whole_gap(task, session, Gap(first, gap.last))
            if not run or not await book.keep_node(session, await leaf(task, run)):
                return False
            first = (run[-1].position or gap.last) + 1
    return True


async def _whole_gap(task: Task, session: Session, gap: Gap) -> list[Entry]:
    tokens = task.tuning.leaf_source_tokens
    return await next_run(session, gap.first, gap.last, tokens, rest=True)


async def _condense(task: Task, session: Session, book: Book) -> bool:
    """Condense the oldest summaries of a depth that has gathered enough; false where none has."""
    ripe = book.forest.ripe(task.tuning.fan_in, SPARED)
    if ripe is None:
        return False
    nodes = await session.summary_nodes([node.node_id for node in ripe])
    nodes.sort(key=lambda node: node.first_position)
    return len(nodes) == len(ripe) and await book.keep_node(session, await condensed(task, nodes))
