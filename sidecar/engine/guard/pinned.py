"""What was pinned, and as much of it as fits beside the minimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from sidecar.engine.calls import Made
from sidecar.engine.entry import Entry
from sidecar.engine.guard.slot import Slot, Writer

HEADING = Made(
    role="user",
    kind="system",
    ref="pinned",
    text="Pinned messages of earlier turns follow.",
    timestamp_ms=0,
)
"""Stands in front of a pinned message of the model where a list must begin with the user."""


class Pin(Struct, frozen=True, kw_only=True):
    """Something that must stay in every answer: a message with what belongs to it, or a text."""

    pin_id: str
    entries: Sequence[Entry] = ()
    """The message; a call with its results, a result with its call."""
    made: Made | None = None
    """The text."""


class Pinned(NamedTuple):
    """The pins that an answer has room for."""

    texts: list[Slot]
    entries: dict[str, tuple[Entry, int, str]]
    """By message id: the entry, its order among the pins from 1, the id of the pin."""
    tokens: int
    """What they take beside the minimum."""
    left_out: list[Pin]


NOTHING = Pinned([], {}, 0, [])


def fitting(pins: Sequence[Pin], needed: Sequence[Entry], writer: Writer, budget: int) -> Pinned:
    """The pins that fit into `budget` tokens together with the needed entries; older ones go first."""
    if not pins:
        return NOTHING
    inside = {entry.message_id for entry in needed}
    room = budget - sum(entry.tokens for entry in needed) - writer.made(HEADING).tokens
    chosen = Pinned([], {}, 0, [])
    taken = 0
    for order, pin in enumerate(pins, 1):
        text = writer.pinned_text(pin.made, order, pin.pin_id) if pin.made else None
        new = [e for e in pin.entries if e.message_id not in inside and e.message_id not in chosen.entries]
        cost = (text.tokens if text else 0) + sum(entry.tokens for entry in new)
        if cost > room - taken:
            chosen.left_out.append(pin)
            continue
        taken += cost
        if text:
            chosen.texts.append(text)
        for entry in pin.entries:
            chosen.entries.setdefault(entry.message_id, (entry, order, pin.pin_id))
    return chosen._replace(tokens=taken)
