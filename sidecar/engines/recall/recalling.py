"""Recalls what the prompt calls for, as a block that stays where it was put."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sidecar.engine.entry import Entry
from sidecar.engine.session import Session
from sidecar.engine.signature import digest
from sidecar.engine.window import Window
from sidecar.engines.recall.measure import Measure
from sidecar.engines.recall.remembered import Remembered
from sidecar.engines.recall.state import Block, RecallState
from sidecar.engines.recollecting import asked_in, framed, last_stored, remark_of
from sidecar.messages.contract import Mark
from sidecar.recall.recollection import Recollection
from sidecar.recall.retrieval import REACH, as_whole, retrieve

LEAST = 120
"""Tokens of room below which nothing is recalled."""
GROWN = 1.25
"""How much more room there must be to recall more for the same prompt."""
LOOK_BACK = 1200
"""Messages in front of the window that are looked at where there is more room than there was for notes."""
LOOK_BACK_TOKENS = 60_000


class Moment(NamedTuple):
    """What is going on when something is recalled."""

    prompt: str
    key: str
    """Stands for the prompt."""
    window: Window
    before: Sequence[Entry]
    """What stands in front of the window, the newest of it."""
    anchor: Entry
    """The message behind which the recollection is to stand."""
    budget: int
    room: int
    """Tokens that the recollection may take, before calibration."""


async def recalled(
    session: Session, remembered: Remembered, moment: Moment, state: RecallState, measure: Measure
) -> Block | None:
    """What the moment calls for and is not there yet; `None` where that is nothing."""
    count = measure.text
    room = moment.room - framed("", count)
    window, before = moment.window, moment.before
    if room < LEAST:
        return None
    shown = [pair for block in state.blocks for pair in block.shown]
    visible = [(entry.position, 0) for entry in window.entries if entry.position]
    asked = asked_in(window, moment.prompt)
    recollection = Recollection(room, count, shown + visible)
    ranked = await retrieve(remembered.of(session), asked, last_stored(before), reach=REACH)
    recollection.add(ranked, room)
    if not window.entries:
        recollection.add((as_whole(remark_of(entry)) for entry in reversed(before)), room)
    text = recollection.text()
    if not text:
        return None
    ref = digest(f"{moment.anchor.message_id} {text}")[:8]
    return Block(
        anchor=moment.anchor.message_id,
        prompt=moment.key,
        budget=moment.budget,
        text=text,
        tokens=framed(text, measure.counted, Mark("recall", ref)),
        shown=recollection.shown,
        ref=ref,
        timestamp_ms=moment.anchor.timestamp_ms,
    )


async def in_front(session: Session, window: Window) -> Sequence[Entry]:
    """The newest messages that the window does not hold."""
    if window.cut and window.entries:
        return await session.timeline.before(window.cut, LOOK_BACK)
    return (await session.timeline.tail(LOOK_BACK_TOKENS)).entries[-LOOK_BACK:]
