"""Decides what is sent in full, what stands for the rest, what is recalled, within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from msgspec import structs

from sidecar.engine.calls import AssembleRequest, Kept, Made
from sidecar.engine.entry import Entry
from sidecar.engine.host import EngineHost
from sidecar.engine.session import Session
from sidecar.engine.window import SLACK, Window, cut_window, keep_window, tokens_of
from sidecar.engines.recall.defaults import NOTES_TOKENS, RECALL_TOKENS
from sidecar.engines.recall.measure import Measure
from sidecar.engines.recall.notes import write_notes
from sidecar.engines.recall.recalling import GROWN, Moment, in_front, recalled
from sidecar.engines.recall.remembered import Remembered
from sidecar.engines.recall.state import NOTES, Block, RecallState
from sidecar.engines.recollecting import (
    ANCHOR_TOKENS,
    anchor,
    asked_last,
    framed,
    is_open,
    last_stored,
    prompt_key,
)
from sidecar.messages.text import fold
from sidecar.recall.situations import situation
from sidecar.recall.working_set import take_note

if TYPE_CHECKING:
    from sidecar.engines.recall.settings import RecallSettings

MARGIN = 0.97
"""Share of the budget that is filled: providers count in another way than we do."""
LOW, HIGH = 0.25, 0.6
"""Shares of the room that the window is cut down to: at least, and where nothing is going to be recalled."""
NEWEST = 0.5
"""Share of the room up to which the newest turn is not cut inside."""
TOO_LARGE = 0.5
"""Share of the room beyond which the newest messages are recalled in part, where they need not be sent."""
FULL = 0.91
"""Share of the room up to which later prompts recall; what is left takes the next messages."""
LATER_SHARE = 0.25
"""Share of what is free up to there that one later prompt recalls at most, where the slack is used up."""
RECALL_SHARE = 0.75
"""Share of the room that the recollection for one prompt takes at most."""
NOTES_SHARE = 0.25
"""Share of the room that notes take at most, where that is more than `FEW_NOTES`."""
FEW_NOTES = 250
"""Tokens that notes may take of a small room too, up to half of it."""


class Plan(NamedTuple):
    """What an answer is made of."""

    window: Window
    state: RecallState

    def items(self) -> list[Kept | Made]:
        """System messages, notes, then the window with each block behind its anchor."""
        items: list[Kept | Made] = [Kept(entry, "system") for entry in self.window.system]
        if self.state.notes:
            items.append(self.state.notes_message())
        blocks: dict[str, list[Block]] = {}
        for block in self.state.blocks:
            blocks.setdefault(block.anchor, []).append(block)
        for entry in self.window.entries:
            items.append(Kept(entry, "system" if entry.role == "system" else "recent"))
            items += [block.as_message() for block in blocks.pop(entry.message_id, ())]
        return items + [block.as_message() for left in blocks.values() for block in left]


class Planner:
    """Makes plans for sessions."""

    def __init__(self, host: EngineHost) -> None:
        self._host = host
        self._remembered = Remembered()
        self._measure = Measure(host.tokens)

    async def plan(self, session: Session, request: AssembleRequest, kept: RecallState) -> Plan:
        """The answer in at most `request.budget` tokens, as far as what the model needs next allows that.

        The window stays where it was, with everything recalled since, while that fits.
        """
        newest = (await session.timeline.tail(ANCHOR_TOKENS)).entries
        asked = await asked_last(session)
        prompt = request.prompt or asked
        key = prompt_key(prompt)
        at = anchor(newest)
        state = _without_unused(kept, at, key)
        reserve = session.calibrated(state.plain_tokens)
        since = None if kept.bare else kept.cut or None
        window = await keep_window(session.timeline, request.budget, since, reserve)
        full = room = int(request.budget * MARGIN)
        moved = window.moved or window.tokens + reserve > request.budget
        if session.view is not None and not session.view.answered:
            # Later, a cut for the sake of a host that counts characters would cost the prefix.
            moved = moved or self._taken(session, window, state) > request.budget
        if moved:
            window, state = await self.cut(session, room, since, prompt=prompt, asked=asked)
        slack = _with_slack(request.budget, tokens_of(window.system))
        if not state.bare:
            full = slack if moved else int(room * FULL)
        state = _without_lost(state, window, at)
        if window.cut is None or at is None or not self._recall_tokens or state.quiet == key:
            return Plan(window, state)
        own = [block for block in state.blocks if block.prompt == key and is_open(block.anchor, window, key)]
        if own and room <= own[-1].budget * GROWN:
            return Plan(window, state)
        taken = window.tokens + session.calibrated(state.plain_tokens)
        left = min(full - taken, room - self._taken(session, window, state), self._recall_tokens)
        if not (moved or state.bare):
            left = min(left, max(slack - taken, int(left * LATER_SHARE)))
        before = await in_front(session, window)
        moment = Moment(prompt, key, window, before, at, room, _plain(session, left))
        block = await recalled(session, self._remembered, moment, state, self._measure)
        if block is not None:
            state = structs.replace(state, blocks=[*state.blocks, block])
        return Plan(window, state)

    def take_note(self, session: Session, entry: Entry) -> None:
        """Read a message that was just stored, so that the next plan finds that done."""
        self._remembered.of(session).note(entry)
        take_note(entry.reading)

    async def cut(
        self,
        session: Session,
        room: int,
        since: str | None,
        target: int | None = None,
        *,
        prompt: str = "",
        asked: str = "",
    ) -> tuple[Window, RecallState]:
        """A smaller window, with new notes in front of it and nothing recalled yet.

        Where `prompt` is not what was `asked` last, the host sends it itself: then the window may be empty.
        """
        apart = fold(asked) != fold(prompt)
        newest, _ = await session.timeline.tail(2 * room)
        start = next((i for i, entry in enumerate(newest) if entry.message_id == since), 0)
        standing_first = await session.timeline.system()
        system = tokens_of(standing_first) + self._measure.excess(standing_first)
        free = max(room - system, 0)
        recall_room = min(self._recall_tokens, int(free * RECALL_SHARE))
        notes_room = min(self._notes_tokens, int(max(free * NOTES_SHARE, min(FEW_NOTES, free / 2))))
        share = max(free * LOW, free * HIGH - recall_room - notes_room)
        wanted = system + int(share)
        most = max(wanted, system + int(free * NEWEST))
        if target is not None:
            notes_room = min(notes_room, int(target * NOTES_SHARE))
            most = wanted = max(target - notes_room, 0)
        window = await self._cut_window(session, newest[start:], most, wanted)
        if apart and tokens_of(window.entries) + self._measure.excess(window.entries) > free * TOO_LARGE:
            window = window._replace(entries=[], cut=newest[-1].message_id)
        state = RecallState(cut=window.cut or "", bare=not window.entries)
        if window.cut is None:
            return window, state
        spent = self._taken(session, window, state)
        left = max(min(notes_room, (room if target is None else target) - spent), 0)
        alone = int(free * NOTES_SHARE)
        terms = situation(prompt, ()).terms
        return window, await self._noted(session, window, _plain(session, left), alone, state, terms)

    async def _cut_window(self, session: Session, entries: Sequence[Entry], room: int, target: int) -> Window:
        """As `cut_window`, by either count."""
        window = await cut_window(session.timeline, entries, room, target)
        excess = self._measure.excess([*window.system, *window.entries])
        if excess and window.tokens + excess > target:
            window = await cut_window(session.timeline, entries, room - excess, target - excess)
        return window

    def _taken(self, session: Session, window: Window, state: RecallState) -> int:
        """Tokens of everything that a plan holds, by the count that finds more."""
        texts = [state.notes, *(block.text for block in state.blocks)]
        own = session.calibrated(state.plain_tokens)
        excess = self._measure.excess([*window.system, *window.entries], filter(None, texts), own)
        return window.tokens + own + excess

    async def _noted(
        self,
        session: Session,
        window: Window,
        room: int,
        alone: int,
        state: RecallState,
        asked: Sequence[str],
    ) -> RecallState:
        count = self._measure.text
        room -= framed("", count)
        if room <= 0:
            return state
        before = await in_front(session, window)
        last = last_stored(before)
        rules = await self._remembered.standing(session, last) if last else ()
        values = self._remembered.values(session, before)
        notes = write_notes(rules, values, window.entries, room, alone, count, asked)
        if not notes:
            return state
        tokens, stamp = framed(notes, self._measure.counted, NOTES), before[-1].timestamp_ms
        return structs.replace(state, notes=notes, notes_tokens=tokens, notes_ms=stamp)

    @property
    def _settings(self) -> RecallSettings | None:
        return cast("RecallSettings | None", self._host.configured)

    @property
    def _recall_tokens(self) -> int:
        return self._settings.recallTokens if self._settings else RECALL_TOKENS

    @property
    def _notes_tokens(self) -> int:
        return self._settings.notesTokens if self._settings else NOTES_TOKENS


def _with_slack(budget: int, system: int) -> int:
    """Tokens up to which is recalled where the window was cut; more where system messages fill the budget."""
    if system * 2 <= budget:
        return int(budget * SLACK)
    return system + int((budget * MARGIN - system) * SLACK)


def _without_unused(state: RecallState, at: Entry | None, key: str) -> RecallState:
    """The state without what was recalled at this very place for another prompt, which never came to be."""
    if at is None:
        return state
    kept = [block for block in state.blocks if block.anchor != at.message_id or block.prompt == key]
    return state if len(kept) == len(state.blocks) else structs.replace(state, blocks=kept)


def _without_lost(state: RecallState, window: Window, at: Entry | None) -> RecallState:
    """The state without what stood behind a message that has left the window, such as a heartbeat's."""
    places = {entry.message_id for entry in window.entries}
    if at is not None:
        places.add(at.message_id)
    kept = [block for block in state.blocks if block.anchor in places]
    return state if len(kept) == len(state.blocks) else structs.replace(state, blocks=kept)


def _plain(session: Session, tokens: int) -> int:
    """How many tokens before calibration count as at most so many in a budget."""
    return tokens * tokens // max(session.calibrated(tokens), 1) if tokens > 0 else 0
