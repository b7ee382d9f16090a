"""What became of each message in an answer, as `context/explain` reports it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from sidecar.engine.contract import Timeline
from sidecar.engine.guard.fit import Fitted

Verdict = Literal["sent", "summarised", "stubbed", "dropped", "pinned"]

LISTED = 2000
"""Messages in front of an answer that are listed; still older ones share the fate of the oldest listed."""


class Decision(NamedTuple):
    """What became of one message, and why."""

    message_id: str
    turn_id: str
    tokens: int
    verdict: Verdict
    reason: str
    by: str | None = None
    """The part of the answer that stands for the message, such as a summary's ref."""


class Record(NamedTuple):
    """What is kept of an answer so that it can be explained later."""

    engine_id: str
    sent: dict[str, Decision]
    left_out: dict[str, Decision]
    covers: Sequence[tuple[int, int, str]]
    first_sent: str | None
    """The oldest message of the session that was sent, system messages aside."""


def record(engine_id: str, fitted: Fitted) -> Record:
    """The record of an answer."""
    sent: dict[str, Decision] = {}
    left_out: dict[str, Decision] = {}
    first = None
    for slot in fitted.slots:
        entry = slot.entry
        if entry is None:
            continue
        verdict: Verdict = "stubbed" if slot.stub else "sent"
        why = "its results were too large for the budget" if slot.stub else _why_sent(slot.kind, slot.needed)
        sent[entry.message_id] = Decision(entry.message_id, entry.turn_id, slot.tokens, verdict, why)
        if first is None and entry.role != "system":
            first = entry.message_id
    for slot, reason in fitted.left_out:
        if (entry := slot.entry) and entry.message_id not in sent:
            left_out[entry.message_id] = Decision(
                entry.message_id, entry.turn_id, entry.tokens, "dropped", reason
            )
    covers = [(*slot.made.covers, slot.made.ref) for slot in fitted.slots if slot.made and slot.made.covers]
    return Record(engine_id, sent, left_out, covers, first)


async def explain(timeline: Timeline, kept: Record) -> list[Decision]:
    """A decision for every message that was sent, and for those in front of and between them."""
    before = await timeline.before(kept.first_sent, LISTED) if kept.first_sent else []
    rest = {e.message_id: e for e in before if e.message_id not in kept.sent}
    decisions: list[Decision] = []
    for message_id, entry in rest.items():
        if message_id in kept.left_out:
            decisions.append(kept.left_out[message_id])
            continue
        ref = _covered(entry.position, kept.covers)
        verdict: Verdict = "summarised" if ref else "dropped"
        why = "older than the window; a summary stands for it" if ref else "older than the window"
        decisions.append(Decision(message_id, entry.turn_id, entry.tokens, verdict, why, ref))
    listed = {d.message_id for d in decisions}
    decisions += [d for d in kept.left_out.values() if d.message_id not in listed]
    return decisions + list(kept.sent.values())


def _why_sent(kind: str, needed: bool) -> str:
    if kind == "system":
        return "system message"
    return "newest user message or its last tool group" if needed else f"in the engine's {kind} part"


def _covered(position: int | None, covers: Sequence[tuple[int, int, str]]) -> str | None:
    if position is None:
        return None
    return next((ref for first, last, ref in covers if first <= position <= last), None)
