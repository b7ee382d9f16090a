"""Reconciles the host's transcript with the store: what is live, what is new, what is ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Raw

from sidecar.engine.entry import Entry
from sidecar.messages.contract import IdentityKeys, Reading
from sidecar.messages.text import fold, same_id
from sidecar.server.sessions.host_list import Aligned, HostMessage, HostTranscript, Shown
from sidecar.server.sessions.live import LiveSession
from sidecar.server.sessions.timeline import SessionTimeline
from sidecar.server.sessions.transcript import WINDOW, follow_transcript, match, read_messages, settle
from sidecar.store.contract import SessionStore
from sidecar.store.stored import NewMessage, SessionHead, SessionRef
from sidecar.store.writes import SaveState

if TYPE_CHECKING:
    from sidecar.server.host_mistakes import DialectWatch
    from sidecar.store.contract import SessionStore


CLAIMED = "claimed"

_COUNTED = re.compile(r"[A-Za-z]*[0-9]{0,4}")
"""Ids that a provider may use again in every turn, such as `call_1`."""

LISTS = 4
"""Lists of one turn that are remembered for the sake of messages that only they showed."""


async def claimed(live: LiveSession) -> int:
    """The position of the newest message of a committed turn, 0 where there is none."""
    kept = await live.state(CLAIMED)
    if kept is None or live.head is None:
        return 0
    entry = await live.stored.find(_message_id(kept))
    return entry.place if entry else min(int(kept.partition(b" ")[0]), live.head.message_count)


async def claim(live: LiveSession) -> None:
    """Note that everything stored by now belongs to a committed turn."""
    head = live.head
    if head is None or not head.message_count:
        return
    newest = (await live.stored.up_to(head.message_count, head.message_count))[-1]
    await live.save_state(CLAIMED, _value(head, newest.message_id))


async def claim_anew(store: SessionStore, ref: SessionRef) -> None:
    """Where the newest message of a committed turn is gone, note that all that are left belong to one."""
    kept, head = await store.state(ref, CLAIMED), await store.session(ref)
    if kept is None or head is None or await store.message(ref, _message_id(kept)):
        return
    newest = await store.messages(ref, head.message_count, head.message_count)
    await store.write(SaveState(ref, CLAIMED, _value(head, newest[0].message_id) if newest else None))


async def known_of_earlier_turns(
    live: LiveSession, messages: Sequence[HostMessage], found: list[Entry | None], earlier: int
) -> None:
    """Complete `found` by messages up to position `earlier` that more than their text identifies."""
    missing = [i for i, entry in enumerate(found) if entry is None and _identified(messages[i])]
    if not missing:
        return
    first = max(1, earlier - 2 * len(messages) - WINDOW + 1)
    known: dict[object, Entry] = {}
    for entry in await live.stored.up_to(earlier, first):
        for name in (("id", entry.message_id), *_names(entry.reading, entry.keys)):
            known[name] = entry
    for i in missing:
        message = messages[i]
        for name in (*_names(message.reading, message.keys), *_stub_names(message)):
            if name in known:
                found[i] = known[name]
                break


def _identified(message: HostMessage) -> bool:
    return message.fenced or bool(_names(message.reading, message.keys))


def _names(reading: Reading, keys: IdentityKeys) -> list[object]:
    """By what a message is known apart from its text, the surest first."""
    names: list[object] = []
    if reading.inner_id:
        names.append(("inner", reading.inner_id))
    if keys.call and not any(_COUNTED.fullmatch(same_id(id)) for id in _call_ids(reading)):
        names.append(("call", keys.call))
    if keys.stamp:
        names.append(("stamp", keys.stamp))
    return names


def _stub_names(message: HostMessage) -> list[object]:
    return [("id", message.stub_of)] if message.stub_of else []


def _call_ids(reading: Reading) -> list[str]:
    return [call.id for call in reading.calls] or [result.call_id for result in reading.results]


def _value(head: SessionHead, message_id: str) -> bytes:
    return f"{head.message_count} {message_id}".encode("utf-8", "surrogatepass")


def _message_id(value: bytes) -> str:
    return value.partition(b" ")[2].decode("utf-8", "surrogatepass")


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


class Reconciler:
    """Works out what of a host's transcript is stored, live or new, for the sessions of one connection."""

    def __init__(self, store: SessionStore, watch: DialectWatch) -> None:
        self._store = store
        self._watch = watch

    async def timeline(
        self, live: LiveSession, messages: Sequence[Raw] | None, prompt: str | None
    ) -> SessionTimeline:
        """The session with the host's list in place of its live tail; unknown messages are staged."""
        count = live.message_count
        if not messages:
            timeline = live.stored_timeline()
            live.closed = max(live.closed, await _closed(live))
            return timeline
        self._watch.look_through(messages)
        transcript = await follow_transcript(live, list(map(bytes, messages)))
        front, talk, base = _parts(transcript.aligned, count)
        before = await live.stored.up_to(base, base) if base else []
        entries = live_entries(live, talk, base, before[-1] if before else None)
        newest = (await live.stored.up_to(count, count))[-1].message_id if count else None
        if not live.exempt:
            _stage(live, transcript, prompt, newest)
        timeline = SessionTimeline(self._store, live.ref, live.stored, count, base, entries)
        if front:
            hidden = [a.stored.place for a in front if a.stored is not None]
            timeline.begin_with(live_entries(live, front, -len(front), None), hidden)
        return timeline

    async def as_came(self, live: LiveSession, messages: Sequence[Raw] | None) -> SessionTimeline:
        """The host's list and nothing else, message by message."""
        read = read_messages(live, list(map(bytes, messages or ())))
        entries = live_entries(live, [Aligned(message, None) for message in read], 0, None)
        return SessionTimeline(self._store, live.ref, live.stored, 0, 0, entries)

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
        self._watch.look_through(messages)
        transcript = await follow_transcript(live, list(map(bytes, messages)))
        begin = transcript.index_of_raw(turn_start) if heartbeat else len(transcript.aligned)
        return new_messages(transcript.aligned, heartbeat_from=begin)

    async def read(self, live: LiveSession, messages: Sequence[Raw]) -> list[HostMessage]:
        """The messages of a turn, without those of ours.

        Raises:
            InvalidParams: one is no message.
        """
        self._watch.look_through(messages)
        read = read_messages(live, list(map(bytes, messages)))
        await settle(live, read)
        return [message for message in read if not message.ours]

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
    until = _open_turn(live, aligned, prompt)
    last = next((entry for i in range(until - 1, -1, -1) if (entry := aligned[i].stored)), None)
    live.closed = max(live.closed, last.place if last else 0)
    shown = live.shown
    if shown and shown[0].raws[:1] == transcript.raws[:1]:
        shown.clear()
    unknown = {a.message.raw for a in aligned[:until] if a.stored is None}
    for earlier in shown:
        unknown.difference_update(earlier.raws)
    if unknown and len(shown) < LISTS:
        raws = transcript.raws_before(until)
        shown.append(Shown(raws, newest, sum(map(len, raws))))


def _open_turn(live: LiveSession, aligned: Sequence[Aligned], prompt: str | None) -> int:
    """The index at which the turn begins that the model is about to go on with."""
    if not aligned or _ends_turn(aligned[-1].message):
        return len(aligned)
    for index in range(len(aligned) - 1, -1, -1):
        reading = aligned[index].message.reading
        if reading.opens_turn:
            return len(aligned) if prompt and not _says(live, reading, prompt) else index
    return len(aligned)


def _says(live: LiveSession, reading: Reading, prompt: str) -> bool:
    if fold(reading.text) == fold(prompt):
        return True
    from sidecar.messages.identity import says

    return says(reading, prompt, live.marks.ours(prompt, "user"))


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
