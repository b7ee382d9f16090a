"""Reconciles a host's transcript with the stored history: the host is the authority on what is live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Raw

from sidecar.engine.entry import Entry
from sidecar.messages.folding import fold
from sidecar.server.sessions.live import LiveSession
from sidecar.server.sessions.timeline import SessionTimeline
from sidecar.server.sessions.transcript import (
    Aligned,
    HostMessage,
    follow_transcript,
    match,
    read_messages,
)
from sidecar.store.contract import NewMessage

if TYPE_CHECKING:
    from sidecar.server.sidecar import Sidecar

CLAIMED = "claimed"


class Reconciler:
    """Works out what of a host's transcript is stored, live or new, for the sessions of one connection."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def timeline(
        self, live: LiveSession, messages: Sequence[Raw] | None, prompt: str | None
    ) -> SessionTimeline:
        """The session with the host's list in place of its live tail; unknown messages are staged."""
        count = live.head.message_count if live.head else 0
        store = self._sidecar.store
        if not messages:
            return SessionTimeline(store, live.ref, live.stored, count)
        transcript = await follow_transcript(live, list(map(bytes, messages)))
        aligned = transcript.aligned
        base = _base(aligned, count)
        turn = await self._turn_at(live, base)
        entries = _entries(live, aligned, base, turn)
        live.staged = _staged(aligned, prompt)
        return SessionTimeline(store, live.ref, live.stored, count, base, entries)

    async def as_came(self, live: LiveSession, messages: Sequence[Raw] | None) -> SessionTimeline:
        """The host's list and nothing else, message by message."""
        read = read_messages(live, list(map(bytes, messages or ())))
        entries = _entries(live, [Aligned(message, None) for message in read], 0, 0)
        return SessionTimeline(self._sidecar.store, live.ref, live.stored, 0, 0, entries)

    async def unknown(
        self,
        live: LiveSession,
        messages: Sequence[bytes | Raw],
        *,
        heartbeat: bool = False,
        whole: bool = True,
        turn_only: bool = False,
    ) -> list[NewMessage]:
        """What of a piece of transcript is not stored yet, ready to be stored in its place.

        `whole` says that the piece is the transcript from its start, not just its newest part. `turn_only`
        says that it is a turn of its own: text alone does not make a message that of an earlier turn.
        """
        read = [m for m in read_messages(live, list(map(bytes, messages))) if not m.ours]
        found = await match(live, read, whole=whole)
        if turn_only:
            claimed = int(await live.state(CLAIMED) or b"0")
            pairs = zip(read, found, strict=True)
            found = [entry if entry and _same(entry, m, claimed) else None for m, entry in pairs]
        return _new_messages(read, found, heartbeat)

    async def take_staged(self, live: LiveSession) -> list[NewMessage]:
        """Messages that the host's transcript showed and that nothing has stored since."""
        staged, live.staged = live.staged, []
        if not staged:
            return []
        return _new_messages(staged, await match(live, staged), heartbeat=False)

    async def claim(self, live: LiveSession) -> None:
        """Note that everything stored by now belongs to a committed turn."""
        if live.head:
            await live.save_state(CLAIMED, str(live.head.message_count).encode())

    async def _turn_at(self, live: LiveSession, base: int) -> int:
        before = await live.stored.up_to(base, base) if base else []
        return before[-1].turn if before else 0


def _staged(aligned: Sequence[Aligned], prompt: str | None) -> list[HostMessage]:
    """Unknown messages, except those of the open turn, which its commit is going to bring."""
    opened = len(aligned)
    newest = max((i for i, a in enumerate(aligned) if a.message.reading.opens_turn), default=None)
    if newest is not None:
        said = aligned[newest].message.reading.text
        if not prompt or fold(said) == fold(prompt):
            opened = newest
    return [a.message for a in aligned[:opened] if a.stored is None]


def _base(aligned: Sequence[Aligned], count: int) -> int:
    """How many stored messages come before the host's list.

    Unknown messages at its start stand in for as many stored ones: a host that changes its first message
    has not added one.
    """
    for i, a in enumerate(aligned):
        if a.stored is not None:
            return max(0, a.stored.place - 1 - i)
    return count


def _entries(live: LiveSession, aligned: Sequence[Aligned], base: int, turn: int) -> list[Entry]:
    entries: list[Entry] = []
    highest = max(turn, live.head.turn_count if live.head else 0)
    opened = turn > 0
    named: dict[str, int] = {}
    for i, (message, stored) in enumerate(aligned):
        place = base + 1 + i
        if stored is not None:
            raw = None if _keeps_stored(message) else message.raw
            entries.append(stored.moved(place, raw=raw))
            turn, opened = stored.turn, True
            continue
        reading = message.reading
        if reading.opens_turn:
            turn = max(highest, turn) + 1 if opened else max(turn, 1)
            highest, opened = max(highest, turn), True
        turn = max(turn, 1)
        name = message.made_up_id
        named[name] = named.get(name, 0) + 1
        entries.append(
            Entry(
                message_id=f"{name}.{named[name]}",
                position=None,
                place=place,
                turn=turn,
                turn_id=f"t{turn}",
                role=reading.role,
                timestamp_ms=reading.timestamp_ms or live.opened_ms,
                heartbeat=False,
                raw=message.raw,
                dialect=live.dialect,
                cost=live.cost,
                reading=reading,
            )
        )
    return entries


def _keeps_stored(message: HostMessage) -> bool:
    """True where the host's copy is not the message itself: a stub, or one with our own text in it."""
    return message.stub_of is not None or message.fenced


def _same(entry: Entry, message: HostMessage, claimed: int) -> bool:
    """Whether a match is certain enough for a turn of its own."""
    if entry.place > claimed:
        return True
    theirs, ours = message.keys, entry.keys
    inner = message.reading.inner_id
    return bool(
        (inner and inner == entry.reading.inner_id)
        or (theirs.call and theirs.call == ours.call)
        or (theirs.stamp and theirs.stamp == ours.stamp)
    )


def _new_messages(
    read: Sequence[HostMessage], found: Sequence[Entry | None], heartbeat: bool
) -> list[NewMessage]:
    """The messages that were not found, each in the place that its neighbours give it."""
    last = max((i for i, entry in enumerate(found) if entry), default=-1)
    new: list[NewMessage] = []
    after: int | None = None
    for i, (message, entry) in enumerate(zip(read, found, strict=True)):
        if entry is not None:
            after = entry.place
            continue
        reading = message.reading
        if i > last:
            place = None
        else:
            following = next(e for e in found[i:] if e)
            place = after if after is not None else following.place - 1
        new.append(
            NewMessage(
                body=message.raw,
                role=reading.role,
                opens_turn=reading.opens_turn and not heartbeat,
                inner_id=reading.inner_id,
                timestamp_ms=reading.timestamp_ms,
                heartbeat=heartbeat,
                after=place,
            )
        )
    return new
