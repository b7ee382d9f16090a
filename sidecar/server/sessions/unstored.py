"""What becomes of a host's messages that are not stored: places, turns and names for the time being."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.engine.entry import Entry
from sidecar.server.sessions.live import LiveSession
from sidecar.server.sessions.transcript import Aligned, HostMessage
from sidecar.store.stored import NewMessage


def new_messages(
    aligned: Sequence[Aligned], *, heartbeat_from: int | None = None, end: int | None = None
) -> list[NewMessage]:
    """The messages that are not stored, each in the place that its neighbours give it.

    Those from index `heartbeat_from` on are a heartbeat's. Those behind the last stored one belong behind the
    position `end`, if it is given, else behind everything.
    """
    unknown = [i for i, a in enumerate(aligned) if a.stored is None and not a.message.is_stub]
    if not unknown:
        return []
    last = next((i for i in range(len(aligned) - 1, -1, -1) if aligned[i].stored), -1)
    if end is not None and last >= 0 and (entry := aligned[last].stored):
        end = max(end, entry.place)
    new: list[NewMessage] = []
    for i in unknown:
        message = aligned[i].message
        reading = message.reading
        heartbeat = heartbeat_from is not None and i >= heartbeat_from
        new.append(
            NewMessage(
                body=message.raw,
                role=reading.role,
                opens_turn=reading.opens_turn and not heartbeat,
                inner_id=reading.inner_id,
                timestamp_ms=reading.timestamp_ms,
                heartbeat=heartbeat,
                after=end if i > last else _behind(aligned, i),
            )
        )
    return new


def _behind(aligned: Sequence[Aligned], index: int) -> int:
    """The stored position behind which the unknown message at `index` belongs."""
    behind = next((entry.place for a in aligned[index:] if (entry := a.stored)), None)
    for i in range(index - 1, -1, -1):
        if entry := aligned[i].stored:
            if entry.role != "system" or behind is None:
                return entry.place
            return max(entry.place, behind - 1)
    return (behind or 1) - 1


def live_entries(
    live: LiveSession, aligned: Sequence[Aligned], base: int, before: Entry | None
) -> list[Entry]:
    """The host's list as engines see it, behind `base` stored messages, of which `before` is the last."""
    naming = _Naming(live, before)
    last = next((i for i in range(len(aligned) - 1, -1, -1) if aligned[i].stored), -1)
    entries: list[Entry] = []
    for i, (message, stored) in enumerate(aligned):
        place = base + 1 + i
        if stored is None:
            if naming.newest is None and i < last:
                naming.newest = next(a.stored for a in aligned[i:] if a.stored)
            entries.append(naming.entry(message, place, at_end=i > last))
            continue
        naming.follow(stored)
        raw = None if _keeps_stored(message) else message.raw
        if place != stored.place or (raw is not None and raw != stored.raw):
            stored = stored.moved(place, raw=raw)
        entries.append(stored)
    return entries


def _keeps_stored(message: HostMessage) -> bool:
    """True where the host's copy is not the message itself: a stub, or one with our own text in it.

    Memory that the host has put behind the user's words is a part of the message from then on.
    """
    return message.fenced and not message.has_appendix


class _Naming:
    """Gives unknown messages the turns and ids that they are going to have, as far as that can be told."""

    def __init__(self, live: LiveSession, newest: Entry | None) -> None:
        self.newest: Entry | None = None
        """The message in front, whose turn is joined or followed."""
        self._live = live
        self._opened = False
        self._highest = live.head.turn_count if live.head else 0
        self._named: dict[str, int] = {}
        if newest is not None:
            self.follow(newest)

    def follow(self, stored: Entry) -> None:
        """Take in the stored message in front; system messages alone have not opened the first turn."""
        self.newest = stored
        self._opened = self._opened or stored.turn > 1 or stored.role != "system"

    def entry(self, message: HostMessage, place: int, *, at_end: bool) -> Entry:
        """An unknown message as engines see it."""
        live, reading = self._live, message.reading
        turn, turn_id = (self.newest.turn, self.newest.turn_id) if self.newest else (1, "t1")
        if at_end and reading.opens_turn:
            if self._opened:
                turn = max(self._highest, turn) + 1
            self._highest, self._opened, turn_id = max(self._highest, turn), True, f"t{turn}"
        name = message.made_up_id
        number = self._named[name] = self._named.get(name, 0) + 1
        entry = Entry(
            message_id=f"{name}.{number}",
            position=None,
            place=place,
            turn=turn,
            turn_id=turn_id,
            role=reading.role,
            timestamp_ms=reading.timestamp_ms or live.opened_ms,
            heartbeat=False,
            raw=message.raw,
            dialect=live.dialect,
            cost=live.cost,
            reading=reading,
        )
        self.newest = entry
        return entry
