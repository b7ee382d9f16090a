"""Plans what is sent: summaries for what is old, messages in full for what is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sidecar.engine.calls import Kept, Made
from sidecar.engine.entry import Entry
from sidecar.engine.session import Session
from sidecar.engine.window import Window, cut_window
from sidecar.engines.lossless.book import Book
from sidecar.engines.lossless.cover import cover
from sidecar.engines.lossless.hints import Hint
from sidecar.engines.lossless.view import View, total
from sidecar.engines.lossless.writing import Task
from sidecar.store.stored import SummaryNode

LEAST_COVER = 160
"""Tokens that are kept for summaries where anything is to be summarised."""


class Plan(NamedTuple):
    """A choice that has not been made durable yet."""

    view: View | None
    window: Window
    beside: list[SummaryNode]
    """Summaries that were made for the view."""
    tokens: int


def items_of(view: View | None, window: Window, hints: Sequence[Hint] = ()) -> list[Kept | Made]:
    """System messages, summaries, then messages in full, each hint behind its anchor."""
    items: list[Kept | Made] = [Kept(entry, "system") for entry in window.system]
    items += [segment.as_message() for segment in view.segments] if view else []
    for entry in window.entries:
        items.append(Kept(entry, "system" if entry.role == "system" else "recent"))
        items += [hint.as_message() for hint in hints if hint.anchor == entry.message_id]
    return items


async def plan(task: Task, session: Session, book: Book, budget: int, target: int) -> Plan:
    """The newest messages in full and summaries of all others, in `target` tokens, `budget` at most."""
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
    return Plan(view, window, chosen.beside, window.tokens + total(chosen.segments, session.count))


async def _position_before(session: Session, newest: list[Entry], at: int, *, whole: bool) -> int:
    """The position of the last stored message in front of the one at `at`."""
    if newest and (position := newest[at].position):
        return position - 1
    for entry in reversed(newest[:at]):
        if entry.position:
            return entry.position
    return 0 if whole or not newest else session.history.count
