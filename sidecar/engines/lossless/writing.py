"""Writes summaries: of messages, and of summaries."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from sidecar.engine.entry import Entry
from sidecar.engine.host import EngineHost
from sidecar.engines.lossless.defaults import Tuning
from sidecar.engines.lossless.forest import NODE, node_id
from sidecar.messages.text import plain_text
from sidecar.store.stored import SummaryNode
from sidecar.summarize.contract import SourceMessage, Summariser, Summary, SummaryRequest, tokens_to_shorten

LEAST_TOKENS = 24
GREATEST_SHARE = 0.5
"""A summary of messages takes no more of its source than this."""
NOTHING_SAID = "(nothing was said here)"
DETAIL = re.compile(
    r"[\w./-]*\d[\w./-]*|\b[A-Z][\w-]{2,}|[\w-]+(?:[./_][\w-]+)+|[\u3400-\u9fff\u3040-\u30ff]{2}"
)
"""Names, numbers, paths, ids: what a summary can only have from its source."""


class Task(NamedTuple):
    """How summaries are to be written."""

    host: EngineHost
    tuning: Tuning
    summariser: Summariser
    instructions: str = ""


async def leaf(task: Task, run: Sequence[Entry], *, letter: str = NODE, most: int = 0) -> SummaryNode:
    """The summary of a run of messages, not kept yet; at most `most` tokens where that is given."""
    request = leaf_request(task, run, most)
    summary = await _grounded(task, request) if any(s.text for s in request.sources) else _nothing()
    ids = [entry.message_id for entry in run]
    positions = [entry.position or 0 for entry in run]
    about = str(most) if most else ""
    return _node(task, node_id(0, ids, letter, about), positions[0], positions[-1], 0, summary, ())


async def condensed(
    task: Task, nodes: Sequence[SummaryNode], *, letter: str = NODE, most: int = 0
) -> SummaryNode:
    """The summary of neighbouring summaries, not kept yet."""
    request = condensed_request(task, nodes, most)
    depth = request.depth
    ids = [node.node_id for node in nodes]
    lasting = tuple(name for name in ids if name.startswith(NODE))
    about = str(most) if most else ""
    summary = await _grounded(task, request)
    first, last = nodes[0].first_position, max(node.last_position for node in nodes)
    return _node(task, node_id(depth, ids, letter, about), first, last, depth, summary, lasting)


def leaf_request(task: Task, run: Sequence[Entry], most: int = 0) -> SummaryRequest:
    """What is asked for where a run of messages is to be summarised."""
    told = [entry for entry in run if entry.role != "system" and not entry.heartbeat]
    sources = [source_of(entry) for entry in told]
    full = task.host.tokens.count("\n".join(source.text for source in sources))
    limit = most or task.tuning.leaf_tokens
    target = max(min(limit, int(full * GREATEST_SHARE)), min(LEAST_TOKENS, limit))
    return SummaryRequest(
        sources=sources, target_tokens=target, instructions=task.instructions or task.tuning.instructions
    )


def condensed_request(task: Task, nodes: Sequence[SummaryNode], most: int = 0) -> SummaryRequest:
    """What is asked for where neighbouring summaries are to be condensed."""
    return SummaryRequest(
        sources=(),
        target_tokens=max(most or task.tuning.condensed_tokens, 1),
        earlier="\n".join(node.text for node in nodes),
        depth=max(node.depth for node in nodes) + 1,
        instructions=task.instructions or task.tuning.instructions,
    )


def is_for_model(task: Task, request: SummaryRequest) -> bool:
    """Whether a model would be asked: there is one, and the sources have to be shortened."""
    if task.summariser is task.host.extractive:
        return False
    return tokens_to_shorten(request, task.host.tokens) > request.target_tokens


def source_of(entry: Entry) -> SourceMessage:
    """A message as summarisers see it."""
    whole = entry.whole or entry
    text, sender = plain_text(whole.reading), whole.reading.sender
    return SourceMessage(entry.message_id, entry.turn_id, entry.role, text, entry.timestamp_ms, sender)


def is_grounded(text: str, source: str) -> bool:
    """Whether a summary says anything of its source: a name, number, path or id out of it."""
    details = set(DETAIL.findall(text))
    if not details:
        return not DETAIL.search(source)
    return any(detail in source for detail in details)


async def _grounded(task: Task, request: SummaryRequest) -> Summary:
    """A summary that says something of its source; a model's that does not is not taken."""
    summary = await task.summariser.summarise(request)
    if summary.quality != "deterministic":
        source = "\n".join((request.earlier, *(source.text for source in request.sources)))
        if not is_grounded(summary.text, source):
            task.host.log("warning", "a model's summary says nothing of its source; it is not taken")
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
