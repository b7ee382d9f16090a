"""Decides, within a budget, which turns are sent in full and which log lines represent the rest."""

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
"""Tokens from the end searched first for the recent turns."""


class WindowState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored state that keeps the window in place."""

    start: str = ""
    """Id of the message at which the window begins; empty for the first of the last K turns."""
    turns: int = 0
    """Turns from there on when it was chosen; fewer now mean that the history was rewound."""
    recent: tuple[int, int] = (0, 0)
    """K and the slack at that time."""
    floor: int = 1
    """Position of the first message that the log may cover."""


class Newest(NamedTuple):
    """The newest part of a timeline, divided into turns."""

    entries: list[Entry]
    starts: list[int]
    """Indices where turns begin."""
    whole: bool

    def index_of(self, message_id: str) -> int | None:
        """The index of a message, or `None`."""
        return next((i for i, entry in enumerate(self.entries) if entry.message_id == message_id), None)

    def turns_from(self, index: int) -> int:
        """Number of turns from an index on, including the one it is in."""
        inside = sum(start > index for start in self.starts)
        return inside + 1 if index < len(self.entries) else 0

    def last(self, turns: int) -> int | None:
        """Index where the last `turns` turns begin; `None` if it is farther back than the entries."""
        if len(self.starts) >= turns:
            return self.starts[-turns]
        return 0 if self.whole else None


async def newest_turns(timeline: Timeline, turns: int, room: int) -> Newest:
    """The newest part of the timeline: at least `turns` turns, `room` tokens, or everything."""
    reach = min(REACH, room)
    while True:
        entries, whole = await timeline.tail(reach)
        starts = _starts(entries, whole)
        if whole or len(starts) > turns or reach >= room:
            return Newest(entries, starts, whole)
        reach = min(reach * 4, room)


def kept_start(newest: Newest, state: WindowState, recent: tuple[int, int]) -> int | None:
    """Index where the previously chosen window begins; `None` if a new choice is needed."""
    turns, slack = recent
    if not state.start:
        everything = newest.whole and len(newest.starts) <= turns + slack
        return 0 if everything else None if slack else newest.last(turns)
    start = newest.index_of(state.start)
    if start is None or state.recent != recent:
        return None
    return start if state.turns <= newest.turns_from(start) <= turns + slack else None


async def load(session: Session) -> WindowState:
    """The stored state of the window, with any references that are no longer in the history cleared."""
    value = await session.state(STATE)
    try:
        state = json.decode(value, type=WindowState) if value else WindowState()
    except MsgspecError:
        state = WindowState()
    start = await session.timeline.resolve(state.start) if state.start else None
    floor = state.floor if state.floor <= session.history.count + 1 else 1
    return WindowState(start=start or "", turns=state.turns, recent=state.recent, floor=floor)


async def save(session: Session, state: WindowState) -> None:
    """Store the state of the window."""
    await session.save_state(STATE, json.encode(state))


def _starts(entries: Sequence[Entry], whole: bool) -> list[int]:
    later = [i for i in range(1, len(entries)) if entries[i].turn != entries[i - 1].turn]
    first = bool(entries) and (whole or entries[0].opens_turn)
    return [0, *later] if first else later


LOG_SHARE = 8
"""If turns must go for lack of room, the log keeps up to one part in this many of the budget."""
LOOK_BACK = 64
"""Messages before the window searched first for ones that are not stored."""


class Plan(NamedTuple):
    """The composition of an answer."""

    window: Window
    log: ActivityLog
    tokens: int
    state: WindowState


class Planner:
    """Makes plans for sessions, and caches the log lines of their history."""

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
        """An answer of at most `room` tokens, unless the model's next step needs more.

        The window stays in place while it fits and holds between K turns and K plus the slack; else it holds
        exactly K. If those exceed `room`, log lines are dropped first, then turns.
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
        """The answer with everything from index `start` on in full."""
        entries = newest.entries
        is_cut = start < len(entries) and (start > 0 or not newest.whole)
        cut = entries[start].message_id if is_cut else None
        window = await open_window(session.timeline, entries, start, cut)
        return await self._with_log(session, newest, window, room, state)

    async def _with_fewer_turns(
        self, session: Session, newest: Newest, start: int, room: int, state: WindowState
    ) -> Plan:
        """The answer with fewer turns, leaving some room for the log."""
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
        """The state to store for a window that begins at `cut`."""
        turns, slack = self._recent
        at = newest.index_of(cut) if cut else None
        if cut is None or at is None or (at == newest.last(turns) and not slack):
            return WindowState(floor=before.floor)
        if before.start == cut and before.recent == self._recent:
            return before
        return WindowState(start=cut, turns=newest.turns_from(at), recent=self._recent, floor=before.floor)

    async def _log(self, session: Session, window: Window, floor: int, enough: int) -> ActivityLog:
        """The log of the messages before the window."""
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
    """The last stored position before a message, and the unstored entries between the two.

    Stored messages after that position that the host's list lacks were rewound by the host.
    """
    look = LOOK_BACK
    while True:
        before = await session.timeline.before(first.message_id, look)
        begin = next((i for i in range(len(before), 0, -1) if before[i - 1].position), 0)
        if begin or len(before) < look:
            return before[begin - 1].position or 0 if begin else 0, before[begin:]
        look *= 8


def _with_fewer_lines(session: Session, plan: Plan, room: int) -> Plan:
    """The same turns with fewer log lines; drops more than necessary, so that the log can grow again."""
    left = room - plan.window.tokens
    wanted = max(int(room * SLACK) - plan.window.tokens, min(room // LOG_SHARE, left), 0)
    plain, counted = plan.log.tokens, session.calibrated(plan.log.tokens)
    log = plan.log.newest(wanted * plain // max(counted, 1))
    if not log.lines:
        log = plan.log.newest(left * plain // max(counted, 1))
    state = structs.replace(plan.state, floor=log.floor)
    return Plan(plan.window, log, plan.window.tokens + session.calibrated(log.tokens), state)
