"""Lets a model write summaries again that are there already, and remembers those that it still owes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import json

from sidecar.engine.session import Session
from sidecar.engines.lossless.book import Book
from sidecar.engines.lossless.forest import NODE
from sidecar.engines.lossless.writing import (
    Task,
    condensed,
    condensed_request,
    is_for_model,
    leaf,
    leaf_request,
)
from sidecar.store.stored import SummaryNode

DEBT_STATE = "debt"
MOST_DEBT = 200
"""Summaries that are remembered as owed; the newest ones."""


class Upgraded(NamedTuple):
    """What came of it."""

    by_model: int
    owed: list[str]
    """Ids of summaries that the model failed to write."""
    current: bool
    """False where the history changed meanwhile."""


async def upgrade(
    task: Task, session: Session, book: Book, node_ids: Sequence[str], progress: tuple[int, int] = (10, 90)
) -> Upgraded:
    """Write these summaries again, finer ones first, each kept as soon as it is written.

    `progress` is told meanwhile, from one percentage to the other.
    """
    begin, end = progress
    by_model = 0
    owed: list[str] = []
    nodes = await _with_short_sources(task, session, node_ids)
    nodes.sort(key=lambda node: (node.depth, node.first_position))
    for number, node in enumerate(nodes):
        span = f"messages {node.first_position} to {node.last_position}"
        session.progress(f"summarising {span}", begin + (end - begin) * number // len(nodes))
        again = await _again(task, session, node)
        if again is None:
            continue
        again, is_due = again
        waits = not is_due and not set(owed).isdisjoint(node.sources)
        if again.quality == "deterministic" and (is_due or waits):
            owed.append(node.node_id)
            if not task.instructions:
                continue
        if not await book.shared.keep_node(session, again):
            return Upgraded(by_model, owed, current=False)
        by_model += again.quality != "deterministic"
    return Upgraded(by_model, owed, current=True)


async def _with_short_sources(task: Task, session: Session, node_ids: Sequence[str]) -> list[SummaryNode]:
    """The summaries, and what stands unshortened in them: there a model writes the parts."""
    found: dict[str, SummaryNode] = {}
    waiting = [node for node in await session.summary_nodes(node_ids) if node.node_id.startswith(NODE)]
    while waiting:
        node = waiting.pop()
        found[node.node_id] = node
        sources = await session.summary_nodes(node.sources) if node.sources else []
        if sources and not is_for_model(task, condensed_request(task, sources)):
            waiting += [s for s in sources if s.quality == "deterministic" and s.node_id not in found]
    return list(found.values())


async def debt_of(session: Session) -> list[str]:
    """Ids of the summaries that a model still owes."""
    kept = await session.state(DEBT_STATE)
    return json.decode(kept, type=list[str]) if kept else []


async def save_debt(session: Session, paid: Iterable[str], owed: Iterable[str]) -> None:
    """Take some off, put others on: last, so that none that fails again stands in front of the rest."""
    before = await debt_of(session)
    again = list(dict.fromkeys(owed))
    gone = {*paid, *again}
    after = [*(node_id for node_id in before if node_id not in gone), *again][-MOST_DEBT:]
    if after != before:
        await session.save_state(DEBT_STATE, json.encode(after) if after else None)


async def _again(task: Task, session: Session, node: SummaryNode) -> tuple[SummaryNode, bool] | None:
    """The node with another text, and whether a model should have written that.

    `None` where its sources are not there any more.
    """
    if node.sources:
        sources = await session.summary_nodes(node.sources)
        if len(sources) != len(node.sources):
            return None
        sources = sorted(sources, key=lambda source: source.first_position)
        is_due = is_for_model(task, condensed_request(task, sources))
        written = await condensed(task, sources)
    else:
        run = await session.history.read(node.first_position, node.last_position)
        if not run:
            return None
        is_due = is_for_model(task, leaf_request(task, run))
        written = await leaf(task, run)
    again = SummaryNode(
        node_id=node.node_id,
        first_position=node.first_position,
        last_position=node.last_position,
        text=written.text,
        tokens=written.tokens,
        quality=written.quality,
        created_ms=written.created_ms,
        depth=node.depth,
        sources=node.sources,
    )
    return again, is_due
