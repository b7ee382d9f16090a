"""Prunes a session where a new epoch begins anyway, before the engine chooses or after it has."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sidecar.engine.guard.answer import Answer
from sidecar.engine.guard.pinned import Pin
from sidecar.engine.guard.pruning_rules import PruningRules
from sidecar.engine.window import SLACK
from sidecar.server.engine_session import EngineSession

REACH = 2
"""Multiple of the budget up to which is looked back for the first answer of a session."""


async def restore(session: EngineSession, pins: Sequence[Pin], signature: str) -> bool:
    """Send whole again what is pinned, and everything where another engine takes over; false if nothing is.

    `signature` stands for the engine and its settings.
    """
    stubs = session.live.guard.stubs
    record = (await session.live.continuity()).record
    if record.epoch and not record.signature.startswith(f"{signature} "):
        return stubs.restore_all()
    return stubs.restore(entry for pin in pins for entry in pin.entries)


async def prune_ahead(
    session: EngineSession, rules: PruningRules, budget: int, spared: Collection[str]
) -> bool:
    """Replace what the engine need not look at whole, where it would have to cut; true where anything is new.

    It is left to the engine's cut where replacing alone does not make room for a while.
    """
    live, timeline = session.live, session.timeline
    if not (await live.continuity()).record.epoch:
        newest = await timeline.tail(REACH * budget)
        return live.guard.prune(rules, newest.entries, budget, spared)
    before = live.results.newest_of(None)
    if live.answered is None or before is None:
        return False
    tokens, place = live.answered
    newer = await timeline.tail(budget)
    wanted = tokens + sum(entry.tokens for entry in newer.entries if entry.place > place)
    if wanted <= budget or not (newer.whole or newer.entries[0].place <= place):
        return False
    sent = before.record.sent
    reach = (await timeline.tail(wanted)).entries
    window = [entry for entry in reach if entry.place > place or entry.message_id in sent]
    return live.guard.prune(rules, window, budget, spared, least=wanted - int(SLACK * budget))


def prune_answer(
    session: EngineSession, rules: PruningRules, answer: Answer, budget: int, spared: Collection[str]
) -> bool:
    """Replace what an answer can do without that begins an epoch; true where anything is new."""
    entries = [slot.entry for slot in answer.fitted.slots if slot.entry]
    return session.live.guard.prune(rules, entries, budget, spared)
