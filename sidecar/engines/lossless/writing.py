"""Writes summaries of messages and of summaries, and rewrites those that a model owes."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import json

from sidecar.engine.entry import Entry
from sidecar.engine.host import EngineHost
from sidecar.engine.session import Session
from sidecar.engines.defaults import Tuning
from sidecar.engines.lossless.book import Book
from sidecar.engines.lossless.forest import NODE, Gap, node_id
from sidecar.messages.pairing import units
from sidecar.messages.text import plain_text
from sidecar.store.stored import SummaryNode
from sidecar.summarize.contract import SourceMessage, Summariser, Summary, SummaryRequest, tokens_to_shorten

LEAST_TOKENS = 24
GREATEST_SHARE = 0.5
"""Maximum size of a summary as a share of its source."""
NOTHING_SAID = "(nothing was said here)"
DETAIL = re.compile(
    r"[\w./-]*\d[\w./-]*|\b[A-Z][\w-]{2,}|[\w-]+(?:[./_][\w-]+)+|[\u3400-\u9fff\u3040-\u30ff]{2}"
)
"""Names, numbers, paths and ids: details that a summary can only take from its source."""


class Task(NamedTuple):
    """How to write summaries."""

    host: EngineHost
    tuning: Tuning
    summariser: Summariser
    instructions: str = ""


async def leaf(task: Task, run: Sequence[Entry], *, letter: str = NODE, most: int = 0) -> SummaryNode:
    """The summary of a run of messages, not stored yet; at most `most` tokens if nonzero."""
    request = leaf_request(task, run, most)
    summary = await _grounded(task, request) if any(s.text for s in request.sources) else _nothing()
    ids = [entry.message_id for entry in run]
    positions = [entry.position or 0 for entry in run]
    about = str(most) if most else ""
    return _node(task, node_id(0, ids, letter, about), positions[0], positions[-1], 0, summary, ())


async def condensed(
    task: Task, nodes: Sequence[SummaryNode], *, letter: str = NODE, most: int = 0
) -> SummaryNode:
    """The summary of neighbouring summaries, not stored yet; at most `most` tokens if nonzero."""
    request = condensed_request(task, nodes, most)
    depth = request.depth
    ids = [node.node_id for node in nodes]
    lasting = tuple(name for name in ids if name.startswith(NODE))
    about = str(most) if most else ""
    summary = await _grounded(task, request)
    first, last = nodes[0].first_position, max(node.last_position for node in nodes)
    return _node(task, node_id(depth, ids, letter, about), first, last, depth, summary, lasting)


def leaf_request(task: Task, run: Sequence[Entry], most: int = 0) -> SummaryRequest:
    """The request to summarise a run of messages."""
    spoken = [entry for entry in run if entry.role != "system" and not entry.heartbeat]
    sources = [source_of(entry) for entry in spoken]
    full = task.host.tokens.count("\n".join(source.text for source in sources))
    limit = most or task.tuning.leaf_tokens
    target = max(min(limit, int(full * GREATEST_SHARE)), min(LEAST_TOKENS, limit))
    return SummaryRequest(
        sources=sources, target_tokens=target, instructions=task.instructions or task.tuning.instructions
    )


def condensed_request(task: Task, nodes: Sequence[SummaryNode], most: int = 0) -> SummaryRequest:
    """The request to condense neighbouring summaries."""
    return SummaryRequest(
        sources=(),
        target_tokens=max(most or task.tuning.condensed_tokens, 1),
        earlier="\n".join(node.text for node in nodes),
        depth=max(node.depth for node in nodes) + 1,
        instructions=task.instructions or task.tuning.instructions,
    )


def is_for_model(task: Task, request: SummaryRequest) -> bool:
    """Whether a model would be used: there is one, and the sources are longer than the target."""
    if task.summariser is task.host.extractive:
        return False
    return tokens_to_shorten(request, task.host.tokens) > request.target_tokens


def source_of(entry: Entry) -> SourceMessage:
    """A message in the form that summarisers take."""
    whole = entry.whole or entry
    text, sender = plain_text(whole.reading), whole.reading.sender
    return SourceMessage(entry.message_id, entry.turn_id, entry.role, text, entry.timestamp_ms, sender)


def is_grounded(text: str, source: str) -> bool:
    """Whether a summary reflects its source: it repeats a name, number, path or id, unless there are none."""
    details = set(DETAIL.findall(text))
    if not details:
        return not DETAIL.search(source)
    return any(detail in source for detail in details)


async def _grounded(task: Task, request: SummaryRequest) -> Summary:
    """A summary that reflects its source; a model's summary that does not is rejected."""
    summary = await task.summariser.summarise(request)
    if summary.quality != "deterministic":
        source = "\n".join((request.earlier, *(source.text for source in request.sources)))
        if not is_grounded(summary.text, source):
            task.host.log("warning", "rejected a model's summary that does not reflect its source")
            summary = await task.host.extractive.summarise(request)
    return summary


def _nothing() -> Summary:
    return Summary(NOTHING_SAID, "deterministic")


def _node(
    task: Task, name: str, first: int, last: int, depth: int, summary: Summary, sources: tuple[str, ...]
) -> SummaryNode:
    text = summary.text.replace("\0", " ").encode("utf-8", "replace").decode() or NOTHING_SAID
    return SummaryNode(
        node_id=name,
        first_position=first,
        last_position=last,
        text=text,
        tokens=task.host.tokens.count(text),
        quality=summary.quality,
        created_ms=int(time.time() * 1000),
        depth=depth,
        sources=sources,
    )


SPARED = 2
"""Newest summaries of a depth that are not condensed."""


async def grow(task: Task, session: Session, book: Book) -> bool:
    """Summarise everything older than the newest run. Returns false if the history changed."""
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
    """Summarise messages inserted between summaries. Returns false if the history changed."""
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
    """Condense the oldest summaries of a depth that has enough of them. Returns false if nothing was done."""
    ripe = book.forest.ripe(task.tuning.fan_in, SPARED)
    if ripe is None:
        return False
    nodes = await session.summary_nodes([node.node_id for node in ripe])
    nodes.sort(key=lambda node: node.first_position)
    return len(nodes) == len(ripe) and await book.shared.keep_node(session, await condensed(task, nodes))


SLICE = 48
"""Messages read at a time."""
LONGEST = 2000
"""Messages after which a run may end inside a unit, so that broken histories are summarised too."""
TURN_WITHIN = 8
"""Maximum messages by which a run is extended to the end of its turn."""


async def next_run(
    session: Session, first: int, last: int, tokens: int, *, rest: bool = False
) -> list[Entry]:
    """The messages from position `first` on that total about `tokens` tokens, ending with a whole unit.

    Reads nothing after `last`. If fewer tokens are left, the result is empty, or with `rest` all of them.
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
    """The earliest end of the run after a whole unit, preferably after a turn; 0 if none is found."""
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


DEBT_STATE = "debt"
MOST_DEBT = 200
"""Maximum owed summaries remembered; the newest ones."""


class Upgraded(NamedTuple):
    """The outcome of rewriting summaries."""

    by_model: int
    owed: list[str]
    """Ids of summaries that the model failed to write."""
    current: bool
    """False if the history changed meanwhile."""


async def upgrade(
    task: Task, session: Session, book: Book, node_ids: Sequence[str], progress: tuple[int, int] = (10, 90)
) -> Upgraded:
    """Rewrite these summaries, finer ones first, and store each as soon as it is written.

    Reports progress from the first percentage in `progress` to the second.
    """
    begin, end = progress
    by_model = 0
    owed: list[str] = []
    nodes = await _with_short_sources(task, session, node_ids)
    nodes.sort(key=lambda node: (node.depth, node.first_position))
    for number, node in enumerate(nodes):
        span = f"messages {node.first_position} to {node.last_position}"
        session.progress(f"summarising {span}", begin + (end - begin) * number // len(nodes))
        rewritten = await _rewritten(task, session, node)
        if rewritten is None:
            continue
        again, is_due = rewritten
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
    """The summaries, plus their sources if these are short enough to appear unshortened in them.

    In that case a model rewrites the sources.
    """
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
    """Remove paid summaries and append owed ones, so that repeated failures do not block the rest."""
    before = await debt_of(session)
    again = list(dict.fromkeys(owed))
    gone = {*paid, *again}
    after = [*(node_id for node_id in before if node_id not in gone), *again][-MOST_DEBT:]
    if after != before:
        await session.save_state(DEBT_STATE, json.encode(after) if after else None)


async def _rewritten(task: Task, session: Session, node: SummaryNode) -> tuple[SummaryNode, bool] | None:
    """The node rewritten, and whether a model should have written it; `None` if its sources are gone."""
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
