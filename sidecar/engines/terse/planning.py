"""Decides which turns are sent in full and which lines stand for the rest, within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import MsgspecError, Struct, json, structs

from sidecar.engine.entry import Entry
from sidecar.engine.host import EngineHost
from sidecar.engine.session import Session, Timeline
from sidecar.engine.window import SLACK, Window, cut_window, open_window
from sidecar.engines.terse.book import Books
from sidecar.engines.terse.log import ActivityLog, LogLine, Scribe

if TYPE_CHECKING:
    from sidecar.engines.settings import TerseSettings

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


LOG_SHARE = 8
"""Where turns have to go for want of room, one part in so many of the budget stays with the log."""
LOOK_BACK = 64
"""Messages in front of the window that are looked at first for such as are not stored."""


class Plan(NamedTuple):
    """What an answer is made of."""

    window: Window
    log: ActivityLog
    tokens: int
    state: WindowState


class Planner:
    """Makes plans for sessions; what it reads of their history is kept in its books."""

    def __init__(self, host: EngineHost) -> None:
        self._host = host
        self._books = Books(host.tokens.count)

    @property
    def settings(self) -> TerseSettings:
        """The settings of the engine."""
        from sidecar.engines.settings import TerseSettings

        return self._host.settings(TerseSettings)

    @property
    def _recent(self) -> tuple[int, int]:
        return self.settings.recentTurns, self.settings.recentTurnsSlack

    async def plan(self, session: Session, room: int, state: WindowState) -> Plan:
        """The answer in at most `room` tokens, as far as what the model needs next allows that.

        The window stays where it was while that fits and holds K turns to K and the slack; else it holds
        exactly K. Where those alone exceed `room`, fewer turns; then the oldest lines go.
        """
        turns, slack = self._recent
        room = max(room, 0)
        newest = await newest_turns(session.timeline, turns + slack, room)
        exact = newest.last(turns)
        plan: Plan | None = None
        for start in dict.fromkeys((kept_start(newest, state, self._recent), exact)):
            if start is not None:
                plan = await self._from(session, newest, start, room, state)
                if plan.tokens <= room:
                    return plan
        if plan is not None and plan.window.tokens <= room:
            return _with_fewer_lines(session, plan, room)
        return await self._with_fewer_turns(session, newest, exact or 0, room, state)

    async def _from(
        self, session: Session, newest: Newest, start: int, room: int, state: WindowState
    ) -> Plan:
        """The answer with everything from an index on in full."""
        entries = newest.entries
        is_cut = start < len(entries) and (start > 0 or not newest.whole)
        cut = entries[start].message_id if is_cut else None
        window = await open_window(session.timeline, entries, start, cut)
        return await self._with_log(session, newest, window, room, state)

    async def _with_fewer_turns(
        self, session: Session, newest: Newest, start: int, room: int, state: WindowState
    ) -> Plan:
        """The answer with as many turns as leave some room for the log."""
        entries = newest.entries[start:]
        reserve = 0
        if entries:
            least = await self._from(session, newest, len(newest.entries) - 1, room, state)
            reserve = min(session.calibrated(least.log.tokens), room // LOG_SHARE)
        lasting = int(room * SLACK) - reserve
        target = lasting if self.settings.recentTurnsSlack else room - reserve
        window = await cut_window(session.timeline, entries, room - reserve, target)
        at = newest.index_of(window.cut) if window.cut else None
        if at is not None and at not in newest.starts:
            window = await cut_window(session.timeline, entries, room - reserve, lasting)
        plan = await self._with_log(session, newest, window, room, state)
        return plan if plan.tokens <= room else _with_fewer_lines(session, plan, room)

    async def _with_log(
        self, session: Session, newest: Newest, window: Window, room: int, state: WindowState
    ) -> Plan:
        log = await self._log(session, window, state.floor, room)
        tokens = window.tokens + session.calibrated(log.tokens)
        return Plan(window, log, tokens, self._state(newest, window.cut, state))

    def _state(self, newest: Newest, cut: str | None, before: WindowState) -> WindowState:
        """What is kept of a window that begins at `cut`."""
        turns, slack = self._recent
        at = newest.index_of(cut) if cut else None
        if cut is None or at is None or (at == newest.last(turns) and not slack):
            return WindowState(floor=before.floor)
        if before.start == cut and before.recent == self._recent:
            return before
        return WindowState(start=cut, turns=newest.turns_from(at), recent=self._recent, floor=before.floor)

    async def _log(self, session: Session, window: Window, floor: int, enough: int) -> ActivityLog:
        """The log of what stands in front of the window."""
        if window.cut is None:
            return ActivityLog((), 0)
        first = next(entry for entry in window.entries if entry.message_id == window.cut)
        unstored: list[Entry] = []
        last = (first.position or 0) - 1
        if first.position is None:
            last, unstored = await _only_in_the_list(session, first)
        untagged = self.settings.logUntagged
        lines = await self._books.lines(
            session, last, floor, next_turn=first.turn, untagged=untagged, enough=enough
        )
        return ActivityLog([*lines, *self._lines_of(unstored)], last)

    def _lines_of(self, entries: list[Entry]) -> list[LogLine]:
        scribe = Scribe(self._host.tokens.count, untagged=self.settings.logUntagged)
        lines = [line for entry in entries for line in scribe.add(entry)]
        return lines + scribe.end_of_turn()


async def _only_in_the_list(session: Session, first: Entry) -> tuple[int, list[Entry]]:
    """What only the host's list holds in front of a message, and the position of the last stored one before.

    What the list does not hold behind that one was taken back by the host.
    """
    look = LOOK_BACK
    while True:
        before = await session.timeline.before(first.message_id, look)
        begin = next((i for i in range(len(before), 0, -1) if before[i - 1].position), 0)
        if begin or len(before) < look:
            return before[begin - 1].position or 0 if begin else 0, before[begin:]
        look *= 8


def _with_fewer_lines(session: Session, plan: Plan, room: int) -> Plan:
    """The same turns with fewer lines: with fewer than it takes, so that the log can grow again."""
    left = room - plan.window.tokens
    wanted = max(int(room * SLACK) - plan.window.tokens, min(room // LOG_SHARE, left), 0)
    plain, counted = plan.log.tokens, session.calibrated(plan.log.tokens)
    log = plan.log.newest(wanted * plain // max(counted, 1))
    if not log.lines:
        log = plan.log.newest(left * plain // max(counted, 1))
    state = structs.replace(plan.state, floor=log.floor)
    return Plan(plan.window, log, plan.window.tokens + session.calibrated(log.tokens), state)
