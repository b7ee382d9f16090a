"""Which turns are sent in full: the last K, up to some more with slack, fewer where they do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import MsgspecError, Struct, json

from sidecar.engine.entry import Entry
from sidecar.engine.session import Session, Timeline

STATE = "window"
REACH = 4096
"""Tokens back from the end within which the recent turns are looked for first."""


class WindowState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of the window, so that it stays where it is."""

    start: str = ""
    """Id of the message at which it begins; empty for the first of the last K turns."""
    turns: int = 0
    """Turns from there on when that was chosen; fewer mean that the history was rewound since."""
    recent: tuple[int, int] = (0, 0)
    """K and the slack at that time."""
    floor: int = 1
    """Position of the first message that the log may speak of."""


class Newest(NamedTuple):
    """The newest part of a timeline by turns."""

    entries: list[Entry]
    starts: list[int]
    """Where turns begin."""
    whole: bool

    def index_of(self, message_id: str) -> int | None:
        """Where a message stands."""
        return next((i for i, entry in enumerate(self.entries) if entry.message_id == message_id), None)

    def turns_from(self, index: int) -> int:
        """How many turns there are from an index on, the one that it stands in included."""
        inside = sum(start > index for start in self.starts)
        return inside + 1 if index < len(self.entries) else 0

    def last(self, turns: int) -> int | None:
        """Where so many turns from the end begin; `None` where that is farther back."""
        if len(self.starts) >= turns:
            return self.starts[-turns]
        return 0 if self.whole else None


async def newest_turns(timeline: Timeline, turns: int, room: int) -> Newest:
    """At least the newest `turns` turns, or `room` tokens, or everything."""
    reach = min(REACH, room)
    while True:
        entries, whole = await timeline.tail(reach)
        starts = _starts(entries, whole)
        if whole or len(starts) > turns or reach >= room:
            return Newest(entries, starts, whole)
        reach = min(reach * 4, room)


def kept_start(newest: Newest, state: WindowState, recent: tuple[int, int]) -> int | None:
    """Where the window begins that was chosen before; `None` where it has to be chosen anew."""
    turns, slack = recent
    if not state.start:
        everything = newest.whole and len(newest.starts) <= turns + slack
        return 0 if everything else None if slack else newest.last(turns)
    start = newest.index_of(state.start)
    if start is None or state.recent != recent:
        return None
    return start if state.turns <= newest.turns_from(start) <= turns + slack else None


async def load(session: Session) -> WindowState:
    """The state of the window; what it names is in the history still."""
    value = await session.state(STATE)
    try:
        state = json.decode(value, type=WindowState) if value else WindowState()
    except MsgspecError:
        state = WindowState()
    start = await session.timeline.resolve(state.start) if state.start else None
    floor = state.floor if state.floor <= session.history.count + 1 else 1
    return WindowState(start=start or "", turns=state.turns, recent=state.recent, floor=floor)


async def save(session: Session, state: WindowState) -> None:
    """Keep the state of the window."""
    await session.save_state(STATE, json.encode(state))


def _starts(entries: Sequence[Entry], whole: bool) -> list[int]:
    later = [i for i in range(1, len(entries)) if entries[i].turn != entries[i - 1].turn]
    first = bool(entries) and (whole or entries[0].opens_turn)
    return [0, *later] if first else later
