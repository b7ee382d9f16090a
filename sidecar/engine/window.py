"""Cuts a session to a budget with slack, so that the cut rarely moves.

A cut that moves every turn changes the start of every answer and defeats the provider's prompt cache. So the
cut stays as long as everything after it fits, and when it must move, it moves far enough to last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sidecar.engine.calls import Assembly, Kept
from sidecar.engine.entry import Entry
from sidecar.engine.session import Timeline
from sidecar.messages.pairing import units

SLACK = 0.75
"""Share of the budget filled after the cut moves (spec: at most 75 %)."""

FARTHEST = 4
"""Multiple of the budget up to which accumulated messages are counted."""


class Window(NamedTuple):
    """The part of a session that is sent in full."""

    system: list[Entry]
    """System messages placed before the window."""
    entries: list[Entry]
    """The window itself, oldest first; if a turn was cut in the middle, its opener comes first."""
    cut: str | None
    """Id of the message at which the window begins; `None` if nothing was cut."""
    moved: bool
    """True if the window now begins elsewhere."""

    @property
    def tokens(self) -> int:
        """Tokens of everything in the window, system messages included."""
        return tokens_of(self.system) + tokens_of(self.entries)


def tokens_of(entries: Iterable[Entry]) -> int:
    """Total tokens of the entries."""
    return sum(entry.tokens for entry in entries)


async def keep_window(
    timeline: Timeline, budget: int, cut: str | None, reserve: int = 0, share: float = SLACK
) -> Window:
    """The window that begins at `cut` if it fits into `budget` minus `reserve` tokens, else a smaller one.

    `cut` is an id returned by `Timeline.resolve`, or `None` if nothing was cut so far. A smaller window fills
    at most `share` of the budget.
    """
    room = max(budget - reserve, 0)
    newest, whole = await timeline.tail(room)
    start = next((i for i, e in enumerate(newest) if e.message_id == cut), None) if cut else None
    if start is not None or whole:
        kept = await open_window(timeline, newest, start or 0, cut if start is not None else None)
        if kept.tokens <= room:
            return kept
    if start is None and newest and newest[0].turn == newest[-1].turn:
        newest = (await timeline.tail(2 * room)).entries  # the last call may be just out of reach
    target = max(int(budget * share) - reserve, 0)
    smaller = await cut_window(timeline, newest[start or 0 :], room, target)
    return smaller._replace(moved=smaller.cut != cut)


async def whole_window(timeline: Timeline, budget: int, cut: str | None) -> Window:
    """Everything since `cut`, up to several times `budget`, to measure how much has accumulated."""
    return await keep_window(timeline, budget * FARTHEST, cut)


async def cut_window(timeline: Timeline, entries: Sequence[Entry], room: int, target: int) -> Window:
    """The largest window of at most `target` tokens that begins at a later turn than `entries`.

    The newest turn is never dropped. If it alone exceeds `room`, its opener stays and its oldest units go,
    down to the last call with its results.
    """
    if not entries:
        return Window(await timeline.system(), [], None, moved=True)
    system = tokens_of(await timeline.system())
    start = _first_that_fits(entries, _turn_starts(entries), target - system)
    window = await open_window(timeline, entries, start, entries[start].message_id)
    if window.tokens > room:
        opener = await timeline.opener(entries[-1].turn)
        spent = system + (opener.tokens if opener else 0)
        start = _first_that_fits(entries, _unit_starts(entries, start), target - spent)
        window = await open_window(timeline, entries, start, entries[start].message_id)
    return window._replace(moved=True)


def _turn_starts(entries: Sequence[Entry]) -> list[int]:
    """Indices where later turns begin; `[0]` if there is only one turn."""
    return [i for i in range(1, len(entries)) if entries[i].turn != entries[i - 1].turn] or [0]


def _unit_starts(entries: Sequence[Entry], first: int) -> list[int]:
    """Indices where the newest turn may be cut: not between a call and its results, nor after the last call.

    Parallel calls, whose results follow all of them, stay together.
    """
    starts: list[int] = []
    last_call, reached = len(entries), first
    for unit in units([entry.reading for entry in entries[first:]]):
        start = first + unit.indices[0]
        entry = entries[start]
        if start >= reached and not (entry.heartbeat or entry.reading.results):
            starts.append(start)
        if any(entries[first + i].reading.calls for i in unit.indices):
            last_call = starts[-1] if starts else first
        reached = max(reached, first + unit.indices[-1] + 1)
    return [start for start in starts if start <= last_call] or [first]


def _first_that_fits(entries: Sequence[Entry], starts: Sequence[int], target: int) -> int:
    """The earliest of `starts` from which the rest fits; the last one if none does."""
    best, total, end = starts[-1], 0, len(entries)
    for start in reversed(starts):
        total += tokens_of(entries[start:end])
        end = start
        if total > target:
            break
        best = start
    return best


async def drop_turns(timeline: Timeline, window: Window, most: int, left: int) -> Window:
    """The window unchanged if it has at most `most` turns, else its newest `left` turns."""
    turns = sorted({entry.turn for entry in window.entries})
    if len(turns) <= most:
        return window
    first = turns[-left]
    start = next(i for i, entry in enumerate(window.entries) if entry.turn == first)
    smaller = await open_window(timeline, window.entries, start, window.entries[start].message_id)
    return smaller._replace(moved=True)


async def open_window(timeline: Timeline, entries: Sequence[Entry], start: int, cut: str | None) -> Window:
    """The window from index `start`, with the messages that must precede it; `cut` is its id."""
    kept = list(entries[start:])
    if kept and not kept[0].opens_turn:
        opener = await timeline.opener(kept[0].turn)
        if opener is not None and all(e.message_id != opener.message_id for e in kept):
            kept.insert(0, opener)
    inside = {e.message_id for e in kept}
    system = [e for e in await timeline.system() if e.message_id not in inside]
    return Window(system, kept, cut, moved=False)


async def newest_that_fits(timeline: Timeline, budget: int) -> Assembly:
    """The system messages and the newest part of the session; the guard trims any excess."""
    system = [Kept(entry, "system") for entry in await timeline.system()]
    tail = (await timeline.tail(budget)).entries
    return Assembly(items=[*system, *(Kept(entry) for entry in tail if entry.role != "system")])
