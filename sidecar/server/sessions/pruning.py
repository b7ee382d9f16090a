"""Pruning: which old results give way to stubs, and which stubs a session keeps."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sidecar.engine.guard.answer import Answer
from sidecar.engine.guard.continuity import ViewRecord
from sidecar.engine.guard.pinned import Pin
from sidecar.engine.guard.pruning_rules import PruningRules
from sidecar.engine.guard.stubs import Stubs
from sidecar.engine.session import Tail, Timeline
from sidecar.engine.window import SLACK
from sidecar.server.engines.session import EngineSession
from sidecar.server.sessions.live import STUBS

REACH = 2
"""Multiple of the budget up to which is looked back for the first answer of a view."""
NEAR = 4096
"""Tokens from the end within which an answer's last message is looked for first."""


async def show_stubs(session: EngineSession, large: int = 0) -> Stubs:
    """Let the session's timeline show stubs where earlier answers of the view did, and of `large` results."""
    live, view = session.live, session.view
    stubs = live.stubs.get(view.id) if view else None
    if stubs is None:
        stubs = live.guard.no_stubs()
        if view is not None and view.answered:
            live.stubs[view.id] = stubs
    stubs.large = large
    if view is not None:
        stubs.load(await live.state(live.view_key(view.id, STUBS)))
    session.timeline.stubs = stubs
    return stubs


async def keep_stubs(session: EngineSession, stubs: Stubs) -> None:
    """Make the stubs that were added survive a restart; returns once they are durable."""
    live = session.live
    if session.view is not None:
        await live.save_state(live.view_key(session.view.id, STUBS), stubs.encoded())


def restore(stubs: Stubs, view: ViewRecord, pins: Sequence[Pin], signature: str) -> bool:
    """Send whole again what is pinned, and everything where another engine takes over; false if nothing is.

    `signature` stands for the engine and its settings.
    """
    if view.begun and not view.signature.startswith(f"{signature} "):
        return stubs.restore_all()
    return stubs.restore(entry for pin in pins for entry in pin.entries)


async def _back_to(place: int, timeline: Timeline, most: int) -> Tail:
    """The newest entries back to that place, or of more than `most` tokens."""
    reach = min(NEAR, most)
    while True:
        found = await timeline.tail(reach)
        if found.whole or found.entries[0].place <= place or reach == most:
            return found
        reach = min(8 * reach, most)


async def prune_ahead(
    session: EngineSession,
    stubs: Stubs,
    view: ViewRecord,
    rules: PruningRules,
    budget: int,
    spared: Collection[str],
) -> bool:
    """Replace what the engine need not look at whole, where it would have to cut; true where anything is new.

    It is left to the engine's cut where replacing alone does not make room for a while.
    """
    live, timeline = session.live, session.timeline
    if not view.begun:
        newest = await timeline.tail(REACH * budget)
        return live.guard.prune(stubs, rules, newest.entries, budget, spared)
    before = live.results.newest_of(None)
    if live.answered is None or before is None or live.answered_view != view.id:
        return False
    tokens, place = live.answered
    newer = await _back_to(place, timeline, budget)
    wanted = tokens + sum(entry.tokens for entry in newer.entries if entry.place > place)
    if wanted <= budget or not (newer.whole or newer.entries[0].place <= place):
        return False
    sent = before.record.sent
    reach = (await timeline.tail(wanted)).entries
    window = [entry for entry in reach if entry.place > place or entry.message_id in sent]
    return live.guard.prune(stubs, rules, window, budget, spared, least=wanted - int(SLACK * budget))


def prune_answer(
    session: EngineSession,
    stubs: Stubs,
    rules: PruningRules,
    answer: Answer,
    budget: int,
    spared: Collection[str],
) -> bool:
    """Replace what an answer can do without that begins an epoch; true where anything is new."""
    entries = [slot.entry for slot in answer.fitted.slots if slot.entry]
    return session.live.guard.prune(stubs, rules, entries, budget, spared)
