"""Pins, and the selection that fits in addition to the minimum."""

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
"""Precedes a pinned assistant message where the list must begin with the user."""


class Pin(Struct, frozen=True, kw_only=True):
    """Content that must be in every answer: a message with its unit, or a text."""

    pin_id: str
    entries: Sequence[Entry] = ()
    """The message; with its results if it is a call, with its call if it is a result."""
    made: Made | None = None
    """The pinned text."""


class Pinned(NamedTuple):
    """The pins that an answer has room for."""

    texts: list[Slot]
    entries: dict[str, tuple[Entry, int, str]]
    """Message id to the entry, the pin's order (from 1) and the pin's id."""
    tokens: int
    """Their tokens in addition to the minimum."""
    left_out: list[Pin]


NOTHING = Pinned([], {}, 0, [])


def fitting(pins: Sequence[Pin], needed: Sequence[Entry], writer: Writer, budget: int) -> Pinned:
    """The pins that fit into `budget` tokens along with the needed entries; older pins take precedence."""
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
