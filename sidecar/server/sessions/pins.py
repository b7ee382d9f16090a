"""The pins of a session: kept durably, and found again on its timeline."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

from msgspec import Struct, json

from sidecar.engine.calls import Made
from sidecar.engine.entry import Entry
from sidecar.engine.guard.pinned import Pin
from sidecar.messages.pairing import units
from sidecar.server.sessions.live import PINS, LiveSession
from sidecar.server.sessions.timeline import SessionTimeline

REACH = 40
"""Messages on either side within which a pinned call finds its results, and a result its call."""


class KeptPin(Struct, frozen=True, kw_only=True):
    """One pin as the store keeps it."""

    pin_id: str
    message_id: str | None = None
    text: str | None = None
    note: str | None = None
    created_ms: int


async def load_pins(live: LiveSession) -> list[KeptPin]:
    """Every pin of the session, oldest first."""
    kept = await live.state(PINS)
    return json.decode(kept, type=list[KeptPin]) if kept else []


async def add_pin(
    live: LiveSession, *, message_id: str | None, text: str | None, note: str | None
) -> tuple[KeptPin, bool]:
    """The pin, once it is durable, and whether it is new: the same thing is pinned once."""
    pins = await load_pins(live)
    for known in pins:
        if (known.message_id, known.text) == (message_id, text):
            return known, False
    pin = KeptPin(
        pin_id=f"pin-{secrets.token_hex(6)}",
        message_id=message_id,
        text=text,
        note=note,
        created_ms=int(time.time() * 1000),
    )
    await live.save_state(PINS, json.encode([*pins, pin]))
    return pin, True


async def remove_pin(live: LiveSession, pin_id: str) -> bool:
    """Whether there was such a pin; there is none once this returns."""
    pins = await load_pins(live)
    left = [pin for pin in pins if pin.pin_id != pin_id]
    if len(left) == len(pins):
        return False
    await live.save_state(PINS, json.encode(left) if left else None)
    return True


async def find_pins(live: LiveSession, timeline: SessionTimeline) -> tuple[list[Pin], list[KeptPin]]:
    """The pins with what they stand for, and those whose message is not there (any more)."""
    found: list[Pin] = []
    lost: list[KeptPin] = []
    for pin in await load_pins(live):
        if pin.text is not None:
            found.append(Pin(pin_id=pin.pin_id, made=_text(pin)))
        elif entries := await _unit_of(timeline, pin.message_id or ""):
            found.append(Pin(pin_id=pin.pin_id, entries=entries))
        else:
            lost.append(pin)
    return found, lost


async def _unit_of(timeline: SessionTimeline, message_id: str) -> Sequence[Entry]:
    """The message, with the call or the results that it cannot be sent without."""
    known = await timeline.resolve(message_id)
    if known is None:
        return ()
    around = await timeline.around(known, REACH)
    at = next((i for i, entry in enumerate(around) if entry.message_id == known), None)
    if at is None:
        return ()
    for unit in units([entry.reading for entry in around]):
        if at in unit.indices:
            return [around[i] for i in unit.indices]
    return [around[at]]


def _text(pin: KeptPin) -> Made:
    return Made(
        role="user",
        kind="system",
        ref=pin.pin_id,
        text=f"Pinned, to be kept in mind: {pin.text}",
        timestamp_ms=pin.created_ms,
    )
