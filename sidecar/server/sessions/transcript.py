"""The host's transcript: its messages, read and compared with what is stored."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from sidecar.engine.entry import Entry
from sidecar.messages.alignment import StoredItem, align
from sidecar.messages.contract import MessageError, Reading
from sidecar.messages.identity import leading_keys, stands_in, stub_refs, without_stubs
from sidecar.messages.text import same_id
from sidecar.rpc.errors import InvalidParams
from sidecar.server.sessions.host_list import Aligned, HostMessage, HostTranscript
from sidecar.server.sessions.live import MEMORY, PINS, LiveSession
from sidecar.server.sessions.timeline import made_up_in

ALIKE = 0.95
"""Share of the words of the shorter text that the other one has to have too."""
NEAREST = 64
"""Messages on either side of a gap that are compared with each other."""

_WORD = re.compile(r"\w+")

WINDOW = 64
"""Stored messages that are looked at beyond as many as the host's list has."""
_FIXED_REFS = {"activityLog": ("log", "ack"), "note": ("history", "turn", "pinned")}
_STATES = {
    "summary": ("engine.default.digest",),
    "recall": ("engine.recall.recall", "engine.lossless.hints"),
    "memory": (MEMORY,),
    "note": (PINS,),
}
"""Where what a mark of the first edition refers to is kept, by kind."""
WIDEST = 4096
"""Stored messages that are looked at where nothing of the host's list is found."""


class _Gap(NamedTuple):
    stored: range
    seen: range
    closed: bool
    """Known messages on both sides, so that nothing else can belong here."""


def match_edited(
    stored: Sequence[Reading], seen: Sequence[Reading], found: list[int | None], *, from_start: bool
) -> None:
    """Complete `found`, the index in `stored` for each message of `seen`, by messages with another text.

    Looked for behind the first message that was found (`from_start`: also in front of it). As many unknown
    messages as stored ones between two known ones, of the same roles, are the stored ones; elsewhere most of
    the text has to be the same. Ids and time stamps that differ speak against it. System messages at the very
    beginning of both sides (`from_start`) are one that the host makes anew.
    """
    if from_start and stored and seen and _is_same_system(stored[0], seen[0], found):
        found[0] = 0
    for gap in _gaps(len(stored), found, from_start):
        if gap.closed and len(gap.stored) == len(gap.seen):
            pairs = list(zip(gap.stored, gap.seen, strict=True))
            if all(_may_be(stored[s], seen[t]) for s, t in pairs):
                for s, t in pairs:
                    found[t] = s
                continue
        begin = gap.stored.start
        for t in gap.seen[:NEAREST]:
            for s in range(begin, min(gap.stored.stop, begin + NEAREST)):
                if _may_be(stored[s], seen[t]) and _is_like(stored[s], seen[t]):
                    found[t], begin = s, s + 1
                    break


def same_stamps(stored: Sequence[Reading], seen: Sequence[Reading]) -> dict[int, int]:
    """Indices in `seen` and `stored` of messages of one role whose time stamp occurs once on each side."""
    kept = _once(stored)
    if not kept:
        return {}
    pairs = ((t, kept.get(key, -1)) for key, t in _once(seen).items())
    return {t: s for t, s in pairs if s >= 0 and t >= 0 and _may_be(stored[s], seen[t])}


def _once(readings: Sequence[Reading]) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for index, reading in enumerate(readings):
        if reading.timestamp_ms is not None:
            key = (reading.wire_role, reading.timestamp_ms)
            found[key] = -1 if key in found else index
    return found


def _gaps(count: int, found: Sequence[int | None], from_start: bool) -> list[_Gap]:
    gaps: list[_Gap] = []
    kept, at, open_ended = -1, -1, not from_start
    for index, match in enumerate(found):
        if match is not None:
            if not open_ended and match - kept > 1 and index - at > 1:
                gaps.append(_Gap(range(kept + 1, match), range(at + 1, index), True))
            kept, at, open_ended = match, index, False
    if kept >= 0 and count - kept > 1 and len(found) - at > 1:
        gaps.append(_Gap(range(kept + 1, count), range(at + 1, len(found)), False))
    return gaps


def _may_be(kept: Reading, seen: Reading) -> bool:
    """Whether nothing but the text of a message speaks against it being the stored one."""
    if kept.role != seen.role or kept.wire_role != seen.wire_role or seen.mark is not None:
        return False
    if kept.inner_id is not None and seen.inner_id is not None and kept.inner_id != seen.inner_id:
        return False
    if kept.timestamp_ms is not None and seen.timestamp_ms is not None:
        return kept.timestamp_ms == seen.timestamp_ms
    return len(kept.calls) == len(seen.calls) and len(kept.results) == len(seen.results)


def _is_same_system(kept: Reading, seen: Reading, found: Sequence[int | None]) -> bool:
    return kept.role == "system" and found[0] is None and 0 not in found and _may_be(kept, seen)


def _is_like(kept: Reading, seen: Reading) -> bool:
    ours, theirs = set(_WORD.findall(kept.text)), set(_WORD.findall(seen.text))
    fewer = min(len(ours), len(theirs))
    return fewer >= 3 and len(ours & theirs) >= ALIKE * fewer


def read_messages(
    live: LiveSession, raws: Sequence[bytes], path: str = "/messages", first: int = 0
) -> list[HostMessage]:
    """The host's messages, read; `first` is the index of the first one in the params.

    Raises:
        InvalidParams: one is no message.
    """
    messages: list[HostMessage] = []
    for i, raw in enumerate(raws, first):
        message = HostMessage(raw, live.list_dialect)
        try:
            _ = message.reading
        except MessageError as error:
            raise InvalidParams(
                f"{path[1:]}[{i}]: {error.reason}", path=f"{path}/{i}{error.pointer}"
            ) from None
        messages.append(message)
    return messages


async def settle(live: LiveSession, messages: Sequence[HostMessage]) -> None:
    """Take for what they say what refers to nothing in this session, whatever its mark."""
    for message in messages:
        if not message.fenced:
            continue
        if stub_refs(message.reading) and not await has_wholes(live, message.reading):
            message.take_for(without_stubs(message.reading))
        if message.reading.mark and not await _resolves(live, message):
            message.take_for(live.dialect.read(message.raw))


async def has_wholes(live: LiveSession, reading: Reading) -> bool:
    """Whether the messages of which stubs in this one speak are in the session, and it is made of them."""
    wholes: list[Reading] = []
    for ref in stub_refs(reading):
        if made_up_in(ref) is not None:  # shown by the host, and not stored yet
            return True
        stored = await live.store.message(live.ref, ref)
        if stored is None:
            return False
        wholes.append(live.dialect.read(stored.body))
    return stands_in(reading, wholes)


async def _resolves(live: LiveSession, message: HostMessage) -> bool:
    """Whether the mark of a whole message holds; one of the first edition has to refer to something."""
    reading = message.reading
    if reading.mark is None or live.dialect.read(message.raw).mark == reading.mark:
        return True
    kind, ref = reading.mark
    if kind in ("stub", "noResult"):
        return True
    if kind == "summary" and (ref == "notes" or await live.store.summary_nodes(live.ref, [ref])):
        return True
    if ref in _FIXED_REFS.get(kind, ()):
        return True
    known = [await live.state(name) for name in _STATES.get(kind, ())]
    if kind == "memory":
        from sidecar.memory.coordinator import mark_of
        from sidecar.memory.record import decoded

        record = decoded(known[0])
        given = [*record.turns, *([record.start] if record.start else [])]
        return any(mark_of(injection.name, injection.body).ref == ref for injection in given)
    named = ref.removeprefix("digest-").encode()
    return any(value is not None and named in value for value in known)


async def follow_transcript(live: LiveSession, raws: Sequence[bytes]) -> HostTranscript:
    """The host's list aligned with the history; what was aligned before is not looked at again.

    Raises:
        InvalidParams: a message is none.
    """
    head = live.head
    version = (head.uid, head.revision, head.message_count) if head else (0, 0, 0)
    known = live.transcript and _without_dropped(live.transcript, raws)
    aligned: list[Aligned] = []
    counts: list[int] = []
    if known is not None:
        same = _same_start(known.raws, raws)
        raws = [*known.raws[:same], *raws[same:]]  # the same bytes are held once
        if known.version != version:
            same = min(same, _settled(known)) if known.version[:2] == version[:2] else 0
        counts = known.counts[:same]
        aligned = known.aligned[: counts[-1]] if counts else []
    if not counts:
        aligned = await _stored_start(live, raws)
        counts = list(range(1, len(aligned) + 1))
    rest = read_messages(live, raws[len(counts) :], first=len(counts))
    await settle(live, rest)
    taken = [message for message in rest if not message.ours]
    behind = next((a for a in reversed(aligned) if a.stored), None)
    stored = await match(live, taken, behind=behind)
    aligned += [Aligned(message, entry) for message, entry in zip(taken, stored, strict=True)]
    total = counts[-1] if counts else 0
    for message in rest:
        total += not message.ours
        counts.append(total)
    transcript = HostTranscript(raws, aligned, counts, version, sum(map(len, raws)))
    live.transcript = transcript
    return transcript


async def match(
    live: LiveSession,
    messages: Sequence[HostMessage],
    *,
    behind: Aligned | None = None,
    after: int = 0,
    whole: bool = True,
) -> list[Entry | None]:
    """For each message the stored entry that it is.

    The messages follow `behind`, which is stored, in a host's list; otherwise only positions behind `after`
    are looked at.
    """
    known = behind.stored if behind else None
    start = known.place if known else after + 1
    last = live.message_count
    if not messages or last < start + (known is not None):
        return [None] * len(messages)
    reach = 2 * len(messages) + WINDOW
    while True:
        first = max(start, last - reach + 1)
        entries = await live.stored.up_to(last, first)
        anchor = [behind.message] if behind and first == start else []
        found = _match(
            entries, [*anchor, *messages], whole=whole, from_start=first == start, anchored=bool(anchor)
        )[len(anchor) :]
        hit = next((i for i, entry in enumerate(found) if entry), None)
        if first == start or reach >= max(WIDEST, 4 * len(messages)):
            return found
        if hit is not None and (entry := found[hit]) and entry.place - hit > first:
            return found
        reach *= 4


async def _stored_start(live: LiveSession, raws: Sequence[bytes]) -> list[Aligned]:
    """The messages at the start of the list that are those at the start of the history, byte for byte."""
    count = live.message_count
    if not raws or not count or count > 4 * len(raws):
        return []
    first = await live.store.messages(live.ref, 1, 1)
    if not first or first[0].body != raws[0]:
        return []
    aligned: list[Aligned] = []
    for entry, raw in zip(await live.stored.up_to(count, 1), raws, strict=False):
        if entry.raw != raw:
            break
        aligned.append(Aligned(HostMessage(raw, live.dialect), entry))
    return aligned


def _match(
    entries: Sequence[Entry],
    messages: Sequence[HostMessage],
    *,
    whole: bool,
    from_start: bool,
    anchored: bool,
) -> list[Entry | None]:
    """`anchored` says that the first message is the first entry, whatever it looks like."""
    kept, seen = [entry.reading for entry in entries], [message.reading for message in messages]
    items = [message.item for message in messages]
    certain = same_stamps(kept, seen)
    if anchored:
        certain[0] = 0
    for t, s in certain.items():
        if items[t].message_id is None:
            items[t] = items[t]._replace(message_id=entries[s].message_id)
    indices = align(
        [_stored_item(entry) for entry in entries],
        items,
        whole=whole,
        from_start=from_start,
        leading_keys=lambda i: leading_keys(messages[i].reading),
    )
    match_edited(kept, seen, indices, from_start=whole and from_start)
    for t, s in enumerate(indices):
        if s is not None and _has_new_results(seen[t], kept, s):
            indices[t] = None
    return [None if index is None else entries[index] for index in indices]


def _has_new_results(seen: Reading, kept: Sequence[Reading], index: int) -> bool:
    """Whether a host has merged results that are not stored into the message that `index` has."""
    new = {same_id(result.call_id) for result in seen.results}
    if len(new) <= len(kept[index].results):
        return False
    for reading in kept[index:]:
        new -= {same_id(result.call_id) for result in reading.results}
        if not new or (reading.calls and reading is not kept[index]):
            break
    return bool(new)


def _stored_item(entry: Entry) -> StoredItem:
    return StoredItem(
        entry.message_id, entry.message_id, entry.reading.inner_id, entry.keys, entry.role == "system"
    )


def _without_dropped(known: HostTranscript, raws: Sequence[bytes]) -> HostTranscript:
    """The list without the messages at its start that the host has dropped since, where that is clear."""
    if not raws or raws[0] in known.raws[:1] or known.raws.count(raws[0]) != 1:
        return known
    start = known.raws.index(raws[0])
    dropped = known.counts[start - 1]
    return known._replace(
        raws=known.raws[start:],
        aligned=known.aligned[dropped:],
        counts=[count - dropped for count in known.counts[start:]],
        size=known.size - sum(map(len, known.raws[:start])),
    )


def _same_start(known: Sequence[bytes], raws: Sequence[bytes]) -> int:
    same = 0
    for before, now in zip(known, raws, strict=False):
        if before != now:
            break
        same += 1
    return same


def _settled(known: HostTranscript) -> int:
    """How many raw messages come before the first that was not stored when it was last looked at."""
    first = next((i for i, a in enumerate(known.aligned) if a.stored is None), len(known.aligned))
    return bisect_right(known.counts, first)
