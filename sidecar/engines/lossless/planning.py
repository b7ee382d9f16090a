"""Plans an answer: summaries of old messages, new messages in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sidecar.engine.calls import Kept, Made
from sidecar.engine.entry import Entry
from sidecar.engine.session import Session
from sidecar.engine.window import Window, cut_window
from sidecar.engines.lossless.book import Book, Segment, View, cost_of, segment_of, total
from sidecar.engines.lossless.forest import VIEW, Forest, Gap, Outline
from sidecar.engines.lossless.writing import LEAST_TOKENS, Task, condensed, leaf
from sidecar.store.stored import SummaryNode

LEAST_COVER = 160
"""Minimum tokens reserved for summaries if anything needs summarising."""


class Plan(NamedTuple):
    """A choice that is not durable yet."""

    view: View | None
    window: Window
    view_nodes: list[SummaryNode]
    """Summaries made for this view."""
    tokens: int


def items_of(view: View | None, window: Window) -> list[Kept | Made]:
    """System messages, summaries, then messages in full."""
    items: list[Kept | Made] = [Kept(entry, "system") for entry in window.system]
    items += [segment.as_message() for segment in view.segments] if view else []
    for entry in window.entries:
        items.append(Kept(entry, "system" if entry.role == "system" else "recent"))
    return items


async def plan(task: Task, session: Session, book: Book, budget: int, target: int) -> Plan:
    """The newest messages in full and summaries of all others, in `target` or at most `budget` tokens."""
    timeline = session.timeline
    least = min(max(int(target * task.tuning.summary_share), LEAST_COVER), budget // 2)
    newest, whole = await timeline.tail(budget)
    if newest and newest[0].turn == newest[-1].turn:
        newest, whole = await timeline.tail(2 * budget)
    window = await cut_window(timeline, newest, max(budget - least, 0), max(target - least, 0))
    at = next((i for i, entry in enumerate(newest) if entry.message_id == window.cut), 0)
    last = await _position_before(session, newest, at, whole=whole)
    if window.cut is None or last < 1:
        return Plan(None, window, [], window.tokens)
    room = max(target - window.tokens, min(least, budget - window.tokens), 1)
    chosen = await cover(task, session, book, last, room)
    view = View(
        segments=tuple(chosen.segments),
        cut=window.cut,
        covered=last,
        version=session.history.version,
        quality="sketch" if chosen.sketched else "",
    )
    return Plan(view, window, chosen.view_nodes, window.tokens + total(chosen.segments, session.count))


async def _position_before(session: Session, newest: list[Entry], at: int, *, whole: bool) -> int:
    """The position of the last stored message before the one at index `at`."""
    if newest and (position := newest[at].position):
        return position - 1
    for entry in reversed(newest[:at]):
        if entry.position:
            return entry.position
    return 0 if whole or not newest else session.history.count


HEADING_TOKENS = 48
"""Approximate tokens of a summary on top of its text."""
WORTH_REFINING = 200
"""Minimum spare tokens for replacing summaries by finer ones."""
SHARE_OF_GAP = 0.4
"""Share of the room for messages without a summary."""
WHOLE_GAP = 1000
"""Maximum messages without a summary that are all read; larger gaps are sampled."""
WHOLE_BYTES = 1 << 20
"""Maximum bytes of messages that are all summarised; larger gaps are sampled."""
SAMPLES = 48
"""Number of messages sampled from a large gap."""
FINE_SHARE = 0.5
"""Share of a room too small for all summaries that is reserved for the newest."""


class Cover(NamedTuple):
    """Summaries in order, and those among them made for this choice."""

    segments: list[Segment]
    view_nodes: list[SummaryNode]
    sketched: bool
    """True if a part was only sampled."""


async def cover(task: Task, session: Session, book: Book, last: int, room: int) -> Cover:
    """Summaries that cover positions 1 to `last`, in at most `room` tokens if possible."""
    parts = _parts(book.forest, last)
    chosen = [part for part in parts if isinstance(part, Outline)]
    gaps = [part for part in parts if isinstance(part, Gap)]
    made: dict[Gap, SummaryNode] = {}
    sketched = False
    for gap in gaps:
        most = min(int(room * SHARE_OF_GAP / len(gaps)) - HEADING_TOKENS, task.tuning.leaf_tokens)
        made[gap], whole = await _gap_node(task, session, gap, max(most, LEAST_TOKENS))
        sketched = sketched or not whole
    spent = sum(node.tokens + HEADING_TOKENS for node in [*chosen, *made.values()])
    if session.calibrated(spent) + WORTH_REFINING < room:
        chosen = _refined(book.forest, chosen, room - session.calibrated(spent), session)
    nodes = await session.summary_nodes([node.node_id for node in chosen])
    nodes = sorted([*nodes, *made.values()], key=lambda node: node.first_position)
    view_nodes = list(made.values())
    segments = [segment_of(node) for node in nodes]
    if total(segments, session.count) > room and nodes:
        nodes, brief = await _merged(task, session, nodes, room)
        kept = {node.node_id for node in nodes}
        view_nodes = [node for node in [*view_nodes, brief] if node.node_id in kept]
        segments = [segment_of(node) for node in nodes]
    return Cover(segments, view_nodes, sketched)


def _parts(forest: Forest, last: int) -> list[Outline | Gap]:
    """The nodes that cover positions up to `last`, and the gaps between them, in order."""
    nodes = forest.down_to(last)
    gaps = [Gap(gap.first, min(gap.last, last)) for gap in forest.gaps() if gap.first <= last]
    covered = nodes[-1].last if nodes else 0
    if covered < last:
        gaps.append(Gap(covered + 1, last))
    return [*nodes, *gaps]


async def _gap_node(task: Task, session: Session, gap: Gap, most: int) -> tuple[SummaryNode, bool]:
    """A summary of a gap's messages, and whether it is based on all of them."""
    entries, whole = await sampled(session, gap)
    return await leaf(task, entries, letter=VIEW, most=_rounded(most)), whole


async def sampled(session: Session, gap: Gap) -> tuple[list[Entry], bool]:
    """The messages from which to summarise a gap, and whether they are all of its messages."""
    if gap.last - gap.first < WHOLE_GAP:
        entries = await session.history.read(gap.first, gap.last)
        if sum(len(entry.raw) for entry in entries) <= WHOLE_BYTES:
            return entries, True
    places = sorted({gap.first + (gap.last - gap.first) * step // (SAMPLES - 1) for step in range(SAMPLES)})
    found: list[Entry] = []
    for place in places:
        found += await session.history.read(place, place)
    return found, False


def _refined(forest: Forest, nodes: Sequence[Outline], spare: int, session: Session) -> list[Outline]:
    """The nodes with the newest ones replaced by their sources as far as `spare` tokens allow."""
    chosen = list(nodes)
    index = len(chosen) - 1
    while index >= 0:
        children = forest.children(chosen[index])
        grown = sum(child.tokens + HEADING_TOKENS for child in children)
        more = session.calibrated(grown - chosen[index].tokens - HEADING_TOKENS)
        if children and more <= spare:
            chosen[index : index + 1] = children
            spare -= more
            index += len(children)
        index -= 1
    return chosen


async def _merged(
    task: Task, session: Session, nodes: Sequence[SummaryNode], room: int
) -> tuple[list[SummaryNode], SummaryNode]:
    """The nodes with the oldest ones merged into one brief so that all fit, and that brief."""
    kept: list[SummaryNode] = []
    spent = 0
    for node in reversed(nodes[1:]):
        cost = cost_of(segment_of(node), session.count)
        if spent + cost > room * FINE_SHARE:
            break
        kept.insert(0, node)
        spent += cost
    older = nodes[: len(nodes) - len(kept)]
    factor = max(session.calibrated(1000), 1000) / 1000
    most = int((room - spent - HEADING_TOKENS) / factor)
    brief = await condensed(task, older, letter=VIEW, most=max(_rounded(most), LEAST_TOKENS))
    return [brief, *kept], brief


def _rounded(tokens: int) -> int:
    """Round down to a coarse step, so that the same summary is requested again."""
    step = 8 if tokens < 256 else 64
    return tokens // step * step
