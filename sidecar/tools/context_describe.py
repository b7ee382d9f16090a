"""The tool `context_describe`: what a summary stands for, and what it was made of."""

from __future__ import annotations

from typing import ClassVar

from msgspec import UNSET, Struct, UnsetType, json

from sidecar.messages.terse_tags import one_line
from sidecar.store.search.excerpt import cut
from sidecar.store.stored import StoredMessage, SummaryNode
from sidecar.tools.arguments import read_arguments
from sidecar.tools.bounding import closed
from sidecar.tools.context_expand import Named
from sidecar.tools.contract import ToolFailed, ToolOutcome, ToolSession
from sidecar.tools.coverage import Coverage
from sidecar.tools.times import show_time

BEGINNING = 120
"""Characters of a source's text that are shown with it."""
TEXT = 9000
"""Characters of the summary itself that are shown."""

DESCRIPTION = """\
Tells what a summary of this conversation stands for: which messages and turns, from when to when, who \
wrote it, and the finer summaries that it was made of. `node` is its id, as in its heading. Without \
`node` it shows the whole conversation: how many messages there are, and the widest summaries. \
context_expand then shows the messages of any of them word for word."""

INPUT_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "node": {
            "type": "string",
            "minLength": 1,
            "description": "Id of a summary; left out for the whole conversation.",
        }
    },
}


class DescribeArguments(Struct, rename="camel"):
    """Arguments of the tool."""

    node: Named | None = None


class Outline(Struct, frozen=True, kw_only=True, rename="camel"):
    """A summary without its text."""

    node_id: str
    first_position: int
    last_position: int
    depth: int
    tokens: int
    quality: str


class Described(Struct, frozen=True, kw_only=True, rename="camel"):
    """A summary, or the whole conversation, for programs."""

    node_id: str | UnsetType = UNSET
    first_position: int
    last_position: int
    first_turn_id: str
    last_turn_id: str
    since: str
    """Time of the first message."""
    until: str
    """Time of the last message."""
    depth: int | UnsetType = UNSET
    tokens: int | UnsetType = UNSET
    quality: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    within: list[str] | UnsetType = UNSET
    """Ids of the summaries that stand for this one, the nearest first."""
    sources: list[Outline]
    """What it was made of; for the conversation, its widest summaries."""
    without_summary: list[tuple[int, int]] | UnsetType = UNSET
    """Messages of it that none of the `sources` stands for, first and last of each run."""


class ContextDescribe:
    """Shows what summaries stand for."""

    name: ClassVar[str] = "context_describe"
    description: ClassVar[str] = DESCRIPTION
    input_schema: ClassVar[bytes] = json.encode(INPUT_SCHEMA)

    async def call(self, session: ToolSession, arguments: bytes) -> ToolOutcome:
        """As `AgentTool.call`."""
        given = read_arguments(arguments, DescribeArguments)
        coverage = Coverage(await session.store.summaries(session.head.ref, texts=False))
        if given.node is None:
            return await _conversation(session, coverage)
        node = coverage.get(given.node)
        if node is None:
            raise ToolFailed(
                f"There is no summary {given.node[:100]} any more. context_describe without a node "
                "shows those that there are."
            )
        return await _node(session, coverage, node)


async def _node(session: ToolSession, coverage: Coverage, node: SummaryNode) -> ToolOutcome:
    first, last = await _ends(session, node.first_position, node.last_position)
    node, *sources = await _with_texts(session, [node, *coverage.sources(node)])
    above = coverage.above(node)
    told = Described(
        node_id=node.node_id,
        first_position=node.first_position,
        last_position=node.last_position,
        first_turn_id=first.turn_id if first else "",
        last_turn_id=last.turn_id if last else "",
        since=show_time(first.timestamp_ms) if first else "",
        until=show_time(last.timestamp_ms) if last else "",
        depth=node.depth,
        tokens=node.tokens,
        quality=node.quality,
        text=node.text,
        within=[parent.node_id for parent in above],
        sources=[_outline(source) for source in sources],
        without_summary=(left := _between(sources, node.first_position, node.last_position)) or UNSET,
    )
    lines = [
        f"--- summary {node.node_id} of messages {_span(told, session)} ---",
        f"Written {_by(node.quality)}; {node.tokens} tokens; of {_made_of(node, len(sources))}.",
    ]
    if above:
        lines.append(f"Within: {', '.join(_named(parent) for parent in above)}.")
    lines.append(cut(node.text, 0, TEXT))
    lines += ["--- made of ---"] if sources else []
    lines += [_line(source) for source in sources]
    lines += [f"messages {begin}-{end}: no summary of their own" for begin, end in left if sources]
    return _outcome(
        lines, told, f'context_expand with node "{node.node_id}" shows its messages word for word'
    )


async def _conversation(session: ToolSession, coverage: Coverage) -> ToolOutcome:
    count = session.head.message_count
    if not count:
        raise ToolFailed("Nothing is stored of this conversation yet.")
    first, last = await _ends(session, 1, count)
    tops = await _with_texts(session, coverage.tops())
    told = Described(
        first_position=1,
        last_position=count,
        first_turn_id=first.turn_id if first else "",
        last_turn_id=last.turn_id if last else "",
        since=show_time(first.timestamp_ms) if first else "",
        until=show_time(last.timestamp_ms) if last else "",
        sources=[_outline(node) for node in tops],
        without_summary=_between(tops, 1, count),
    )
    lines = [f"--- the whole conversation: messages {_span(told, session)} ---"]
    lines += [_line(node) for node in tops] or ["There are no summaries."]
    lines += [f"messages {begin}-{end}: no summary" for begin, end in _between(tops, 1, count) if tops]
    return _outcome(lines, told, 'context_expand with "first" and "last" shows any messages word for word')


async def _with_texts(session: ToolSession, nodes: list[SummaryNode]) -> list[SummaryNode]:
    """The same summaries; one that was taken away meanwhile is left as it is."""
    full = await session.store.summary_nodes(session.head.ref, [node.node_id for node in nodes])
    texts = {node.node_id: node for node in full}
    return [texts.get(node.node_id, node) for node in nodes]


async def _ends(
    session: ToolSession, first: int, last: int
) -> tuple[StoredMessage | None, StoredMessage | None]:
    ends = [*await session.read(first, first), *await session.read(last, last)]
    return (ends[0], ends[-1]) if ends else (None, None)


def _outcome(lines: list[str], told: Described, hint: str) -> ToolOutcome:
    return ToolOutcome(closed([*lines, f"{hint}."], f"{hint}.", in_part=0), json.encode(told))


def _outline(node: SummaryNode) -> Outline:
    return Outline(
        node_id=node.node_id,
        first_position=node.first_position,
        last_position=node.last_position,
        depth=node.depth,
        tokens=node.tokens,
        quality=node.quality,
    )


def _span(told: Described, session: ToolSession) -> str:
    turns = f"turns {one_line(told.first_turn_id)} to {one_line(told.last_turn_id)}"
    where = f"{told.first_position}-{told.last_position} of {session.head.message_count}"
    return f"{where}, {turns}, {told.since} to {told.until}"


def _by(quality: str) -> str:
    return "without a model" if quality == "deterministic" else "by a model"


def _made_of(node: SummaryNode, known: int) -> str:
    return f"{known} summaries" if known else f"{node.last_position - node.first_position + 1} messages"


def _named(node: SummaryNode) -> str:
    return f"{node.node_id} (messages {node.first_position}-{node.last_position})"


def _line(node: SummaryNode) -> str:
    return f"{_named(node)}, {node.tokens} tokens: {cut(one_line(node.text), 0, BEGINNING)}"


def _between(nodes: list[SummaryNode], first: int, last: int) -> list[tuple[int, int]]:
    """The runs of messages from `first` to `last` that none of the summaries stands for."""
    found: list[tuple[int, int]] = []
    reached = first - 1
    for node in nodes:
        if node.first_position > reached + 1:
            found.append((reached + 1, node.first_position - 1))
        reached = max(reached, node.last_position)
    return [*found, (reached + 1, last)] if reached < last else found
