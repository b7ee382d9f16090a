"""Reconciles a host's transcript with the stored history: the host is the authority on what is live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Raw

from sidecar.engine.entry import Entry
from sidecar.messages.folding import fold
from sidecar.server.sessions.claims import claimed, known_of_earlier_turns
from sidecar.server.sessions.live import LiveSession
from sidecar.server.sessions.timeline import SessionTimeline, stored_timeline
from sidecar.server.sessions.transcript import (
    Aligned,
    HostMessage,
    HostTranscript,
    Shown,
    follow_transcript,
    match,
    read_messages,
)
from sidecar.server.sessions.unstored import live_entries, new_messages

if TYPE_CHECKING:
    from sidecar.server.sidecar import Sidecar
    from sidecar.store.stored import NewMessage

LISTS = 4
"""Lists of one turn that are remembered for the sake of messages that only they showed."""


class Reconciler:
    """Works out what of a host's transcript is stored, live or new, for the sessions of one connection."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def timeline(
        self, live: LiveSession, messages: Sequence[Raw] | None, prompt: str | None
    ) -> SessionTimeline:
        """The session with the host's list in place of its live tail; unknown messages are staged."""
        count = live.message_count
        if not messages:
            timeline = stored_timeline(live)
            live.closed = max(live.closed, await _closed(live))
            return timeline
        transcript = await follow_transcript(live, list(map(bytes, messages)))
        front, talk, base = _parts(transcript.aligned, count)
        before = await live.stored.up_to(base, base) if base else []
        entries = live_entries(live, talk, base, before[-1] if before else None)
        newest = (await live.stored.up_to(count, count))[-1].message_id if count else None
        if not live.exempt:
            _stage(live, transcript, prompt, newest)
        timeline = SessionTimeline(self._sidecar.store, live.ref, live.stored, count, base, entries)
        if front:
            hidden = [a.stored.place for a in front if a.stored is not None]
            timeline.begin_with(live_entries(live, front, -len(front), None), hidden)
        return timeline

    async def as_came(self, live: LiveSession, messages: Sequence[Raw] | None) -> SessionTimeline:
        """The host's list and nothing else, message by message."""
        read = read_messages(live, list(map(bytes, messages or ())))
        entries = live_entries(live, [Aligned(message, None) for message in read], 0, None)
        return SessionTimeline(self._sidecar.store, live.ref, live.stored, 0, 0, entries)

    async def of_transcript(
        self,
        live: LiveSession,
        messages: Sequence[bytes | Raw],
        *,
        heartbeat: bool = False,
        turn_start: int = 0,
    ) -> list[NewMessage]:
        """What of a whole transcript is not stored yet, ready to be stored in its place.

        With `heartbeat`, the messages from index `turn_start` on are a heartbeat's.
        """
        transcript = await follow_transcript(live, list(map(bytes, messages)))
        begin = transcript.index_of_raw(turn_start) if heartbeat else len(transcript.aligned)
        return new_messages(transcript.aligned, heartbeat_from=begin)

    def read(self, live: LiveSession, messages: Sequence[Raw]) -> list[HostMessage]:
        """The messages of a turn, without those of ours.

        Raises:
            InvalidParams: one is no message.
        """
        return [m for m in read_messages(live, list(map(bytes, messages))) if not m.ours]

    async def of_turn(
        self, live: LiveSession, read: Sequence[HostMessage], *, heartbeat: bool, committed: bool
    ) -> list[NewMessage]:
        """What of a turn's own messages is not stored yet.

        Text alone does not make a message that of an earlier turn, unless the messages are several turns that
        begin with the end of the history. `committed` says that turns before this one were told apart by
        their advancement keys.
        """
        earlier = max(live.closed, await claimed(live) if committed else 0)
        found = await match(live, read, after=earlier, whole=False)
        if earlier and (overlapping := await _going_on(live, read)):
            found = overlapping
        elif earlier:
            await known_of_earlier_turns(live, read, found, earlier)
        aligned = [Aligned(message, entry) for message, entry in zip(read, found, strict=True)]
        return new_messages(aligned, heartbeat_from=0 if heartbeat else len(aligned))

    async def staged(self, live: LiveSession) -> list[NewMessage]:
        """Messages that a list of the host has shown and that nothing has stored since; the first list's.

        `unstage` says that they are stored.
        """
        while live.shown:
            shown = live.shown[0]
            transcript = await follow_transcript(live, shown.raws)
            newest = await live.stored.find(shown.newest) if shown.newest else None
            new = new_messages(transcript.aligned, end=_end(live, shown, newest))
            if new:
                return new
            await self.unstage(live)
        return []

    async def unstage(self, live: LiveSession) -> None:
        """Forget the list that `staged` has spoken of; lists that were shown after it belong behind it."""
        shown, *later = live.shown
        live.shown = later
        if not later:
            return
        await live.refresh()
        transcript = await follow_transcript(live, shown.raws)
        last = next((a.stored for a in reversed(transcript.aligned) if a.stored), None)
        if last is not None:
            live.shown = [await _not_before(live, list_, last) for list_ in later]


async def _going_on(live: LiveSession, read: Sequence[HostMessage]) -> list[Entry | None] | None:
    """The stored ones among messages of several turns that begin with the end of the history."""
    if not read or not any(message.reading.opens_turn for message in read[1:]):
        return None
    found = await match(live, read, whole=False)
    known = [entry.place for entry in found if entry is not None]
    count = live.message_count
    if not known or known != list(range(count - len(known) + 1, count + 1)) or found[0] is None:
        return None
    return found


async def _not_before(live: LiveSession, shown: Shown, last: Entry) -> Shown:
    """The list, taken to have been shown when `last` was stored already."""
    newest = await live.stored.find(shown.newest) if shown.newest else None
    return shown if newest and newest.place > last.place else shown._replace(newest=last.message_id)


def _end(live: LiveSession, shown: Shown, newest: Entry | None) -> int | None:
    """The position behind which the end of a list belongs, `None` for the end of the history."""
    count = live.message_count
    place = newest.place if newest else 0
    return place if place < count and (newest or shown.newest is None) else None


def _stage(live: LiveSession, transcript: HostTranscript, prompt: str | None, newest: str | None) -> None:
    """Remember a list with unknown messages in front of the open turn, which its commit is going to bring."""
    aligned = transcript.aligned
    until = _open_turn(aligned, prompt)
    last = next((entry for i in range(until - 1, -1, -1) if (entry := aligned[i].stored)), None)
    live.closed = max(live.closed, last.place if last else 0)
    shown = live.shown
    if shown and shown[0].raws[:1] == transcript.raws[:1]:
        shown.clear()
    unknown = {a.message.raw for a in aligned[:until] if a.stored is None}
    for earlier in shown:
        unknown.difference_update(earlier.raws)
    if unknown and len(shown) < LISTS:
        shown.append(Shown(transcript.raws_before(until), newest))


def _open_turn(aligned: Sequence[Aligned], prompt: str | None) -> int:
    """The index at which the turn begins that the model is about to go on with."""
    if not aligned or _ends_turn(aligned[-1].message):
        return len(aligned)
    for index in range(len(aligned) - 1, -1, -1):
        reading = aligned[index].message.reading
        if reading.opens_turn:
            return len(aligned) if prompt and not _says(reading.text, prompt) else index
    return len(aligned)


def _says(text: str, prompt: str) -> bool:
    if fold(text) == fold(prompt):
        return True
    from sidecar.messages.appended import says

    return says(text, prompt)


def _ends_turn(message: HostMessage | Entry) -> bool:
    return message.reading.role == "assistant" and not message.reading.calls


async def _closed(live: LiveSession) -> int:
    """The position of the last stored message in front of the open turn."""
    head = live.head
    if head is None or not head.message_count:
        return 0
    newest = await live.stored.up_to(head.message_count, head.message_count)
    if newest and _ends_turn(newest[-1]):
        return head.message_count
    start = await live.store.turn_start(live.ref, head.turn_count)
    return start - 1 if start else 0


def _parts(aligned: Sequence[Aligned], count: int) -> tuple[Sequence[Aligned], Sequence[Aligned], int]:
    """System messages that stand in front of everything, the live tail, and the stored messages before it.

    A host that sends the newest messages behind its system messages has not taken back what is between them,
    as long as any of those messages is known.
    """
    lead = next((i for i, a in enumerate(aligned) if a.message.reading.role != "system"), len(aligned))
    talk = aligned[lead:]
    if lead and any(a.stored is not None for a in talk):
        base = _base(talk, count)
        if base > lead:
            return aligned[:lead], talk, base
    return (), aligned, _base(aligned, count)


def _base(aligned: Sequence[Aligned], count: int) -> int:
    """How many stored messages come before the host's list.

    Unknown messages at its start stand in for as many stored ones: a host that changes its first message
    has not added one.
    """
    for i, a in enumerate(aligned):
        if a.stored is not None:
            return max(0, a.stored.place - 1 - i)
    return count
