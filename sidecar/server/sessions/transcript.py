"""What a host's own list of messages is to a session: which are stored, which are new, which are ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sidecar.engine.entry import Entry
from sidecar.messages.alignment import StoredItem, TranscriptItem, align
from sidecar.messages.contract import IdentityKeys, MessageError, Reading
from sidecar.messages.fence import OPENING_BYTES
from sidecar.messages.identity import keys, leading_keys, size, stands_for
from sidecar.rpc.errors import InvalidParams
from sidecar.server.sessions.live import LiveSession

WINDOW = 64
"""Stored messages that are looked at beyond as many as the host's list has."""
WIDEST = 4096
"""Stored messages that are looked at where nothing of the host's list is found."""


class HostMessage:
    """One message of a host's list."""

    __slots__ = ("_keys", "raw", "reading", "stub_of")

    def __init__(self, raw: bytes, reading: Reading) -> None:
        self.raw = raw
        self.reading = reading
        self.stub_of = stands_for(reading)
        self._keys: IdentityKeys | None = None

    @property
    def ours(self) -> bool:
        """True for a text that an engine or the guard made, and that is not to be taken for a message."""
        mark = self.reading.mark
        return mark is not None and mark.kind != "stub"

    @property
    def fenced(self) -> bool:
        """True where text of ours stands in the message."""
        return OPENING_BYTES in self.raw

    @property
    def made_up_id(self) -> str:
        """A name for the message until it is stored."""
        return f"live-{self.keys.text & 0xFFFFFFFFFFFFFFFF:016x}"

    @property
    def keys(self) -> IdentityKeys:
        """The fingerprints of Identity."""
        if self._keys is None:
            self._keys = keys(self.reading)
        return self._keys

    @property
    def item(self) -> TranscriptItem:
        """The message as alignment sees it."""
        return TranscriptItem(self.stub_of, self.reading.inner_id, self.keys, size(self.reading))


class Aligned(NamedTuple):
    """A host's message with the stored one that it is, if it is one."""

    message: HostMessage
    stored: Entry | None


class HostTranscript(NamedTuple):
    """A host's list after alignment, synthetic messages left out."""

    raws: Sequence[bytes]
    aligned: list[Aligned]
    counts: list[int]
    """For each raw message, how many of `aligned` come from it and those before."""
    version: tuple[int, int, int]
    """The history it was aligned with: uid, revision, message count."""


def read_messages(live: LiveSession, raws: Sequence[bytes], path: str = "/messages") -> list[HostMessage]:
    """The host's messages, read.

    Raises:
        InvalidParams: one is no message.
    """
    messages: list[HostMessage] = []
    for i, raw in enumerate(raws):
        try:
            messages.append(HostMessage(raw, live.dialect.read(raw)))
        except MessageError as error:
            raise InvalidParams(
                f"{path[1:]}[{i}]: {error.reason}", path=f"{path}/{i}{error.pointer}"
            ) from None
    return messages


async def follow_transcript(live: LiveSession, raws: Sequence[bytes]) -> HostTranscript:
    """The host's list aligned with the history; what was aligned before is not looked at again."""
    head = live.head
    version = (head.uid, head.revision, head.message_count) if head else (0, 0, 0)
    known = live.transcript
    aligned: list[Aligned] = []
    counts: list[int] = []
    if known is not None:
        same = _same_start(known.raws, raws)
        if known.version != version:
            same = min(same, _settled(known)) if known.version[:2] == version[:2] else 0
        counts = known.counts[:same]
        aligned = known.aligned[: counts[-1]] if counts else []
    rest = read_messages(live, raws[len(counts) :])
    taken = [message for message in rest if not message.ours]
    stored = await match(live, taken, after=_last_stored(aligned))
    aligned += [Aligned(message, entry) for message, entry in zip(taken, stored, strict=True)]
    total = counts[-1] if counts else 0
    for message in rest:
        total += not message.ours
        counts.append(total)
    transcript = HostTranscript(raws, aligned, counts, version)
    live.transcript = transcript
    return transcript


async def match(
    live: LiveSession, messages: Sequence[HostMessage], *, after: int = 0, whole: bool = True
) -> list[Entry | None]:
    """For each message the stored entry that it is; only positions behind `after` are looked at."""
    last = live.head.message_count if live.head else 0
    if not messages or last <= after:
        return [None] * len(messages)
    reach = 2 * len(messages) + WINDOW
    while True:
        first = max(after + 1, last - reach + 1)
        entries = await live.stored.up_to(last, first)
        found = _match(entries, messages, whole)
        hit = next((i for i, entry in enumerate(found) if entry), None)
        if first <= after + 1 or reach >= max(WIDEST, 4 * len(messages)):
            return found
        if hit is not None and (entry := found[hit]) and entry.place - hit > first:
            return found
        reach *= 4


def _match(entries: Sequence[Entry], messages: Sequence[HostMessage], whole: bool) -> list[Entry | None]:
    start = 0
    if whole and entries and entries[0].raw == messages[0].raw:
        while start < min(len(entries), len(messages)) and entries[start].raw == messages[start].raw:
            start += 1
    rest = messages[start:]
    found: list[Entry | None] = list(entries[:start])
    if rest:
        stored = [_stored_item(entry) for entry in entries[start:]]
        indices = align(
            stored,
            [message.item for message in rest],
            whole=whole,
            leading_keys=lambda i: leading_keys(rest[i].reading),
        )
        found += [None if i is None else entries[start + i] for i in indices]
    return found


def _stored_item(entry: Entry) -> StoredItem:
    return StoredItem(entry.message_id, entry.message_id, entry.reading.inner_id, entry.keys)


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
    return sum(1 for count in known.counts if count <= first)


def _last_stored(aligned: Sequence[Aligned]) -> int:
    return next((a.stored.place for a in reversed(aligned) if a.stored), 0)
