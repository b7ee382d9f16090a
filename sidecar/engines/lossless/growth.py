"""Lets the forest grow: summaries for messages that have none, then summaries of summaries."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.engine.entry import Entry
from sidecar.engine.session import Session
from sidecar.engines.lossless.book import Book
from sidecar.engines.lossless.forest import Gap
from sidecar.engines.lossless.writing import Task, condensed, leaf
from sidecar.messages.pairing import units

SPARED = 2
"""Newest summaries of a depth that stay fine."""


async def grow(task: Task, session: Session, book: Book) -> bool:
    """Summarise what is older than the newest run, without a model; false where the history changed."""
    async with book.shared.writing:
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
            if not await book.shared.keep_node(session, await leaf(task, run)):
                return False
        await book.shared.keep_mark(session)
    return True


async def _fill_gap(task: Task, session: Session, book: Book) -> bool:
    """Summarise messages that were put in between summaries."""
    for gap in book.forest.gaps():
        first = gap.first
        while first <= gap.last:
            run = await _whole_gap(task, session, Gap(first, gap.last))
            if not run or not await book.shared.keep_node(session, await leaf(task, run)):
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
    return len(nodes) == len(ripe) and await book.shared.keep_node(session, await condensed(task, nodes))


SLICE = 48
"""Messages that are read at a time."""
LONGEST = 2000
"""Messages after which a run ends even inside a unit, so that a broken history is summarised too."""
TURN_WITHIN = 8
"""Messages within which the end of a run is moved on to the end of its turn."""


async def next_run(
    session: Session, first: int, last: int, tokens: int, *, rest: bool = False
) -> list[Entry]:
    """The messages from position `first` on that hold about `tokens` tokens, ending with a whole unit.

    Nothing behind `last` is taken. Empty where there are fewer tokens, unless the `rest` is wanted too.
    """
    entries: list[Entry] = []
    total, reach = 0, 0
    while True:
        start = first + len(entries)
        more = await session.history.read(start, min(start + SLICE - 1, last)) if start <= last else []
        entries += more
        ended = not more or entries[-1].position == last
        while reach < len(entries) and total < tokens:
            total += entries[reach].tokens
            reach += 1
        if total >= tokens or (rest and ended):
            end = _end(entries, reach, ended=ended)
            if end or ended or len(entries) >= LONGEST:
                return entries[: end or (len(entries) if rest or len(entries) >= LONGEST else 0)]
        elif ended:
            return []


def _end(entries: Sequence[Entry], least: int, *, ended: bool) -> int:
    """Where the run ends at the earliest: behind a whole unit, best behind a turn; 0 where none is seen."""
    inside: set[int] = set()
    for unit in units([entry.reading for entry in entries]):
        inside.update(range(unit.indices[0] + 1, unit.indices[-1] + 1))
    known = len(entries) if ended else len(entries) - TURN_WITHIN
    ends = [end for end in range(least, len(entries) + 1) if end not in inside]
    ends = [end for end in ends if end < known or (ended and end == len(entries))]
    if not ends:
        return 0
    for end in ends:
        if end - ends[0] <= TURN_WITHIN and end < len(entries) and entries[end].opens_turn:
            return end
    return ends[0]
