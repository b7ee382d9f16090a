"""Points to the summaries behind which there are passages that match what is asked."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import MsgspecError, Struct, json, structs

from sidecar.engine.calls import Made
from sidecar.engine.entry import Entry
from sidecar.engine.session import Session
from sidecar.engine.signature import digest
from sidecar.engine.window import Window
from sidecar.engines.lossless.view import View
from sidecar.engines.recollecting import (
    ANCHOR_TOKENS,
    SessionRemarks,
    anchor,
    asked_in,
    asked_last,
    framed,
    is_open,
    prompt_key,
)
from sidecar.messages.contract import Mark
from sidecar.recall.passages import rough_tokens
from sidecar.recall.recollection import day
from sidecar.recall.remarks import Remark
from sidecar.recall.retrieval import Passage, retrieve

HINTS_STATE = "hints"
HEADER = (
    "[Behind the summaries, about what is asked; no new instructions. context_describe opens a summary, "
    "context_expand shows messages by their numbers]"
)
LEAST = 100
"""Tokens of room below which nothing is pointed to."""
ROOM_SHARE, BUDGET_SHARE = 0.5, 0.2
"""Share of the room that is left, which one hint takes at most, since messages to come need it too, and share
of the budget that all take; then there are no others until the summaries change."""
HITS = 24
"""Messages that are looked at for one hint."""
KEPT_SESSIONS = 32


class Hint(Struct, frozen=True, array_like=True):
    """What one prompt called for."""

    anchor: str
    """Id of the message behind which it stands."""
    prompt: str
    """Stands for the prompt."""
    text: str
    shown: list[tuple[int, int]]
    """Position and part of each passage."""
    timestamp_ms: int

    @property
    def ref(self) -> str:
        """Names the hint."""
        return digest(f"{self.anchor} {self.text}")[:8]

    def as_message(self) -> Made:
        """The hint as an item of an answer."""
        return Made(
            role="user",
            kind="recall",
            ref=self.ref,
            text=self.text,
            timestamp_ms=self.timestamp_ms,
            lasting=True,
        )

    def cost(self, count: Callable[[str], int]) -> int:
        """Tokens that it takes as a message."""
        return framed(self.text, count, Mark("recall", self.ref))


class Hints(Struct, frozen=True, kw_only=True):
    """The hints of one view, the oldest first."""

    view: str
    """Stands for the view."""
    given: tuple[Hint, ...] = ()

    def cost(self, count: Callable[[str], int]) -> int:
        """Tokens of all of them."""
        return sum(hint.cost(count) for hint in self.given)

    def room(self, budget: int, left: int, count: Callable[[str], int]) -> int:
        """Tokens for one more, where so many are left of the budget."""
        return min(int(left * ROOM_SHARE), int(budget * BUDGET_SHARE) - self.cost(count))


class Asked(NamedTuple):
    """What is asked, and where the answer to it may stand."""

    prompt: str
    key: str
    """Stands for the prompt."""
    anchor: Entry | None
    """The message behind which a hint may stand, `None` where there is none."""


class HintWriter:
    """Finds passages in stored histories; what was read of them is kept for the next prompt."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[tuple[str, str], dict[int, Remark]] = OrderedDict()

    async def hint(
        self, session: Session, view: View, window: Window, asked: Asked, known: Hints, room: int
    ) -> Hint | None:
        """What is behind the summaries about what is asked, in at most `room` tokens; `None` for nothing."""
        at = asked.anchor
        if at is None or room < LEAST:
            return None
        if any(hint.prompt == asked.key and is_open(hint.anchor, window, asked.key) for hint in known.given):
            return None
        takes = window.tokens + view.cost(session.count) + known.cost(session.count) + room
        if (await session.timeline.tail(takes)).whole:
            return None  # with a hint the answer would take as much as everything that was said
        what = asked_in(window, asked.prompt)
        ranked = await retrieve(self._remarks(session), what, view.covered, HITS)
        shown = {pair for hint in known.given for pair in hint.shown}
        new = [passage for passage in ranked if passage.key not in shown and passage.text]
        text, taken = _written(view, new, room, lambda text: max(session.count(text), rough_tokens(text)))
        if not taken:
            return None
        return Hint(at.message_id, asked.key, text, taken, at.timestamp_ms)

    def _remarks(self, session: Session) -> SessionRemarks:
        key = (session.session_id, session.history.version)
        known = self._sessions.setdefault(key, {})
        self._sessions.move_to_end(key)
        if len(self._sessions) > KEPT_SESSIONS:
            self._sessions.popitem(last=False)
        return SessionRemarks(session, known)


async def what_is_asked(session: Session, prompt: str) -> Asked:
    """The prompt, or else what opened the newest turn."""
    said = prompt or await asked_last(session)
    return Asked(said, prompt_key(said), anchor((await session.timeline.tail(ANCHOR_TOKENS)).entries))


def view_key(view: View) -> str:
    """Stands for a view."""
    return digest(" ".join((view.version, view.cut, *(segment.node_id for segment in view.segments))))


async def hints_of(session: Session, view: View, asked: Asked) -> Hints:
    """The hints that stand in a view, where the timeline has their places now."""
    hints = await _kept(session, view)
    given: list[Hint] = []
    for hint in hints.given:
        place = await session.timeline.resolve(hint.anchor)
        if place is None or _came_to_nothing(hint, place, asked):
            continue
        given.append(hint if place == hint.anchor else structs.replace(hint, anchor=place))
    return hints if given == list(hints.given) else structs.replace(hints, given=tuple(given))


async def hints_cost(session: Session, view: View) -> int:
    """Tokens of the hints that stand in a view."""
    return (await _kept(session, view)).cost(session.count)


async def _kept(session: Session, view: View) -> Hints:
    key = view_key(view)
    kept = await session.state(HINTS_STATE)
    try:
        hints = json.decode(kept, type=Hints) if kept else None
    except MsgspecError:
        hints = None
    return hints if hints is not None and hints.view == key else Hints(view=key)


async def keep_hints(session: Session, hints: Hints) -> None:
    """Keep the hints."""
    await session.save_state(HINTS_STATE, json.encode(hints) if hints.given else None)


def _came_to_nothing(hint: Hint, place: str, asked: Asked) -> bool:
    """Whether a hint was given at this very place for another prompt, which was never sent."""
    return asked.anchor is not None and place == asked.anchor.message_id and hint.prompt != asked.key


def _written(
    view: View, ranked: Sequence[Passage], room: int, count: Callable[[str], int]
) -> tuple[str, list[tuple[int, int]]]:
    """The passages that fit in this order, under the summaries that stand for them."""
    left = room - framed(HEADER, count)
    lines: list[tuple[int, int, str]] = []
    for passage in ranked:
        line = _line(view, passage)
        cost = count(line) + 1
        if line and cost <= left:
            lines.append((*passage.key, line))
            left -= cost
    lines.sort()
    return "\n".join((HEADER, *(line for _, _, line in lines))), [(at, part) for at, part, _ in lines]


def _line(view: View, passage: Passage) -> str:
    """One passage with its place; empty where no summary stands for it."""
    remark = passage.remark
    starts = [segment.first for segment in view.segments]
    index = bisect_right(starts, remark.position) - 1
    if index < 0 or view.segments[index].last < remark.position:
        return ""
    node = view.segments[index].node_id
    role = "tool" if remark.is_result else remark.role
    when = day(remark.timestamp_ms)
    return f"({node}, message {remark.position}, {when}) {role}: {passage.text.strip()}"
