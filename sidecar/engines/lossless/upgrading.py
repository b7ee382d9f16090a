"""Lets a model write summaries again that are there already, and remembers those that it still owes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import json

from sidecar.engine.contract import Session
from sidecar.engines.lossless.book import Book
from sidecar.engines.lossless.forest import NODE
from sidecar.engines.lossless.writing import Task, condensed, leaf
from sidecar.store.contract import SummaryNode

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
    nodes = [n for n in await session.summary_nodes(node_ids) if n.node_id.startswith(NODE)]
    nodes.sort(key=lambda node: (node.depth, node.first_position))
    for number, node in enumerate(nodes):
        span = f"messages {node.first_position} to {node.last_position}"
        session.progress(f"summarising {span}", begin + (end - begin) * number // len(nodes))
        again = await _again(task, session, node)
        if again is None:
            continue
        if again.quality == "deterministic" and task.summariser is not task.host.extractive:
            owed.append(node.node_id)
            if not task.instructions:
                continue
        if not await book.keep_node(session, again):
            return Upgraded(by_model, owed, current=False)
        by_model += again.quality != "deterministic"
    return Upgraded(by_model, owed, current=True)


async def debt_of(session: Session) -> list[str]:
    """Ids of the summaries that a model still owes."""
    kept = await session.state(DEBT_STATE)
    return json.decode(kept, type=list[str]) if kept else []


async def save_debt(session: Session, paid: Iterable[str], owed: Iterable[str]) -> None:
    """Take some off, put others on."""
    before = await debt_of(session)
    gone = set(paid)
    after = list(dict.fromkeys([*(node_id for node_id in before if node_id not in gone), *owed]))[-MOST_DEBT:]
    if after != before:
        await session.save_state(DEBT_STATE, json.encode(after) if after else None)


async def _again(task: Task, session: Session, node: SummaryNode) -> SummaryNode | None:
    """The node with another text; `None` where its sources are not there any more."""
    if node.sources:
        sources = await session.summary_nodes(node.sources)
        if len(sources) != len(node.sources):
            return None
        written = await condensed(task, sorted(sources, key=lambda source: source.first_position))
    else:
        run = await session.history.read(node.first_position, node.last_position)
        if not run:
            return None
        written = await leaf(task, run)
    return SummaryNode(
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
