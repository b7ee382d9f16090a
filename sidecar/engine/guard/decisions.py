"""The outcome for each message in an answer, as reported by `context/explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from sidecar.engine.entry import Entry
from sidecar.engine.guard.fit import Fitted
from sidecar.engine.session import Timeline

Verdict = Literal["sent", "summarised", "stubbed", "dropped", "pinned"]

LISTED = 2000
"""Maximum earlier messages listed; older ones have the same outcome as the oldest listed."""

WHY_REPLACED = {
    "duplicate": "the same call was made again later",
    "trim": "old: its results are shortened",
    "failed": "the call failed: its result is cut to the first lines",
    "media": "old: the images of its results are left out",
    "images": "old: its images are left out",
}
"""Reason for a replacement, by its kind."""


class Decision(NamedTuple):
    """The outcome for one message, and the reason."""

    message_id: str
    turn_id: str
    tokens: int
    verdict: Verdict
    reason: str
    by: str | None = None
    """The part of the answer that covers the message, such as a summary's ref."""


class Record(NamedTuple):
    """The record of an answer, kept to explain it later."""

    engine_id: str
    sent: dict[str, Decision]
    left_out: dict[str, Decision]
    covers: Sequence[tuple[int, int, str]]
    last_sent: str | None
    """The newest message of the session that was sent."""
    quotes: dict[int, tuple[str, str]]
    """Messages quoted by recalled text: position to the reason and the text's ref."""


def record(engine_id: str, fitted: Fitted) -> Record:
    """The record of an answer."""
    sent: dict[str, Decision] = {}
    left_out: dict[str, Decision] = {}
    last: Entry | None = None
    for slot in fitted.slots:
        entry = slot.entry
        if entry is None:
            continue
        verdict: Verdict = "stubbed" if slot.stub else "sent"
        why = _why_replaced(entry) if slot.stub else _why_sent(slot.kind, slot.needed)
        by = None
        if slot.pin and not slot.stub:
            verdict, why, by = "pinned", "it is pinned", slot.pin_id
        sent[entry.message_id] = Decision(entry.message_id, entry.turn_id, slot.tokens, verdict, why, by)
        if last is None or entry.place > last.place:
            last = entry
    for slot, reason in fitted.left_out:
        if (entry := slot.entry) and entry.message_id not in sent:
            left_out[entry.message_id] = Decision(
                entry.message_id, entry.turn_id, entry.tokens, "dropped", reason
            )
    covers = [(*slot.made.covers, slot.made.ref) for slot in fitted.slots if slot.made and slot.made.covers]
    made = [slot.made for slot in fitted.slots if slot.made]
    quotes = {position: (why, each.ref) for each in made for position, why in each.quotes}
    return Record(engine_id, sent, left_out, covers, last.message_id if last else None, quotes)


async def explain(timeline: Timeline, kept: Record) -> list[Decision]:
    """A decision for every message that was sent or left out, and for those before and between them."""
    reach = LISTED + len(kept.sent) + len(kept.left_out)
    before = await timeline.before(kept.last_sent, reach) if kept.last_sent else []
    decisions: list[Decision] = []
    listed: set[str] = set()
    for entry in before:
        known = kept.sent.get(entry.message_id) or kept.left_out.get(entry.message_id)
        decisions.append(known or _not_chosen(entry, kept))
        listed.add(entry.message_id)
    older = [d for d in kept.sent.values() if d.message_id not in listed and d.message_id != kept.last_sent]
    newest = [d for d in kept.sent.values() if d.message_id == kept.last_sent]
    return older + decisions + newest + [d for d in kept.left_out.values() if d.message_id not in listed]


def _not_chosen(entry: Entry, kept: Record) -> Decision:
    """The decision for a message that the engine did not choose."""
    if entry.position in kept.quotes:
        why, ref = kept.quotes[entry.position]
        why = f"older than the window; recalled: {why}"
        return Decision(entry.message_id, entry.turn_id, entry.tokens, "summarised", why, ref)
    ref = next((ref for first, last, ref in kept.covers if first <= entry.place <= last), None)
    if ref:
        why = "older than the window; a summary stands for it"
        return Decision(entry.message_id, entry.turn_id, entry.tokens, "summarised", why, ref)
    why = "a heartbeat of an earlier turn" if entry.heartbeat else "older than the window"
    return Decision(entry.message_id, entry.turn_id, entry.tokens, "dropped", why)


def _why_replaced(entry: Entry) -> str:
    return WHY_REPLACED.get(entry.how, "its results are too large for the budget")


def _why_sent(kind: str, needed: bool) -> str:
    if kind == "system":
        return "system message"
    if needed:
        return "the newest user message, or the last calls after it with their results"
    return "among the newest messages" if kind == "recent" else f"chosen by the engine as {kind}"
