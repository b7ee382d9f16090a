"""Which messages a search may find, and how the databases are asked for them.

A message is meant by its place: the uid of the session that owns it, and its position there, in one number.
So the messages of one session are one range of places, and a fork is a few ranges.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from sidecar.store.forks import spans
from sidecar.store.primitives import RowReads
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.search import MOST_S, SearchQuery
from sidecar.store.search.query import Groups
from sidecar.store.stored import SessionRef

POSITION_BITS = 24
MOST_POSITION = (1 << POSITION_BITS) - 1
"""Messages beyond this one of a session are not searched."""
EVERY_PLACE = 0, (1 << 63) - 1
FEW_SESSIONS = 24
"""Sessions of an agent up to which each is asked for by itself."""


def place_of(uid: int, position: int) -> int:
    """The place of a message."""
    return uid << POSITION_BITS | min(position, MOST_POSITION)


def position_of(place: int) -> int:
    """The position of a message."""
    return place & MOST_POSITION


def uid_of(place: int) -> int:
    """The session that owns a message."""
    return place >> POSITION_BITS


class SearchReads(RowReads, Protocol):
    """What a search reads, of one state of the store."""

    @property
    def has_parts(self) -> bool:
        """Whether there is an index of the parts of words."""
        ...

    def candidates(
        self, groups: Groups, parts: Sequence[str], low: int, high: int, limit: int, *, newest: bool
    ) -> list[int]:
        """Indexed places in a range whose messages have one term of every group and all these parts of words.

        In order, the highest or the lowest first. `parts` only where there is an index of them.
        """
        ...

    def not_indexed(self, low: int, high: int, limit: int) -> list[int]:
        """Places in a range whose messages are not indexed yet, in order; the highest of them."""
        ...

    def rows_at(self, places: Sequence[int]) -> list[MessageRow]:
        """The messages at these places, at most some hundred, in any order; what is gone is left out."""
        ...

    def row_ids_at(self, places: Sequence[int]) -> dict[int, int]:
        """The row ids of messages, by place."""
        ...

    def mean_size(self, low: int, high: int, most: int) -> float:
        """How many bytes a message in a range has, judged by the newest."""
        ...

    def stamps_at(self, places: Sequence[int]) -> dict[int, int]:
        """The times of messages, by place."""
        ...

    def readable(self, namespace: str, agent_id: str | None, limit: int | None) -> list[SessionRecord]:
        """Sessions of a namespace that are this agent's or nobody's (`None`: all), by rising uid."""
        ...

    def message_total(self) -> int:
        """How many messages there are, about."""
        ...

    def newest_session(self) -> int:
        """The uid of the session that was made last, 0 where there is none."""
        ...

    def children_of(self, uid: int) -> list[SessionRecord]:
        """The sessions whose `parent` this is."""
        ...

    def owner(self, uid: int) -> SessionRecord | None:
        """The session of that uid, where there is one."""
        ...


class Budget:
    """The time that a search may take."""

    def __init__(self, query: SearchQuery) -> None:
        self._until = time.monotonic() + max(0.0, min(query.most_s, MOST_S))

    def over(self) -> bool:
        """Whether it is used up."""
        return time.monotonic() >= self._until


class Stretch(NamedTuple):
    """Messages that one session owns and that may be found."""

    told: SessionRecord
    """The session that they are told as messages of: the owner, or a fork that shares them."""
    owner: SessionRecord
    first: int
    last: int

    @property
    def range(self) -> tuple[int, int]:
        """Their places."""
        return place_of(self.owner.uid, self.first), place_of(self.owner.uid, self.last)


class Scope(Protocol):
    """The messages that a search may find."""

    total: int
    """How many, about."""
    exact: bool
    """Whether everything in the ranges may be found."""

    def ranges(self) -> list[tuple[int, int]]:
        """The places, in order."""
        ...

    def stretch(self, place: int) -> Stretch | None:
        """What a place that may be found belongs to."""
        ...

    def owned(self, low: int, high: int, *, newest: bool) -> Iterator[tuple[int, int]]:
        """The places between two that may be found, session by session."""
        ...

    def count(self, low: int, high: int) -> int:
        """How many messages are between two places, about."""
        ...


class OfSession:
    """The messages of one session at some positions."""

    exact = True

    def __init__(self, reads: RowReads, record: SessionRecord, first: int, last: int) -> None:
        self._stretches = [
            Stretch(record, *owned)
            for owned in spans(reads, record, first, min(last, record.message_count, MOST_POSITION))
        ]
        self.total = sum(stretch.last - stretch.first + 1 for stretch in self._stretches)

    def ranges(self) -> list[tuple[int, int]]:
        """See `Scope`."""
        return [stretch.range for stretch in self._stretches]

    def stretch(self, place: int) -> Stretch | None:
        """See `Scope`."""
        return next((each for each in self._stretches if each.range[0] <= place <= each.range[1]), None)

    def owned(self, low: int, high: int, *, newest: bool) -> Iterator[tuple[int, int]]:
        """See `Scope`."""
        del newest
        yield low, high

    def count(self, low: int, high: int) -> int:
        """See `Scope`."""
        return sum(max(0, min(high, last) - max(low, first) + 1) for first, last in self.ranges())


class OfAgent:
    """The messages of all sessions that an agent may read, each of them once."""

    def __init__(
        self, reads: SearchReads, namespace: str, agent_id: str | None, without: Collection[SessionRef]
    ) -> None:
        self._reads = reads
        self._namespace = namespace
        self._low, self._high = EVERY_PLACE
        self._agent_id = agent_id
        self._without = set(without)
        self._stretches: dict[int, Stretch | None] = {}
        """By uid of the owner, as far as they were asked for."""
        self._hidden: dict[int, int] = {}
        """By uid of the owner: up to which position its messages belong to a session that is left out."""
        for ref in self._without:
            record = reads.session(ref)
            for owner, _, last in () if record is None else spans(reads, record, 1, record.message_count):
                self._hidden[owner.uid] = max(last, self._hidden.get(owner.uid, 0))
        some = reads.readable(namespace, agent_id, FEW_SESSIONS + 1)
        self._known = {record.uid: record for record in some}
        self._owners = self._owners_of(some) if len(some) <= FEW_SESSIONS else None
        """All owners, where they are few."""
        self.exact = self._owners is not None
        if self._owners is None:
            self.total = reads.message_total()
        else:
            found = [stretch for uid in self._owners if (stretch := self._of_owner(uid)) is not None]
            self.total = sum(stretch.last - stretch.first + 1 for stretch in found)

    def clip(self, low: int, high: int) -> None:
        """Leave out what is not between two places."""
        self._low, self._high = low, high

    def ranges(self) -> list[tuple[int, int]]:
        """See `Scope`."""
        if self._owners is None:
            return [(self._low, self._high)]
        found = (each.range for uid in self._owners if (each := self._of_owner(uid)) is not None)
        return list(self._clipped(found))

    def stretch(self, place: int) -> Stretch | None:
        """See `Scope`."""
        found = self._of_owner(uid_of(place))
        return found if found is not None and found.first <= position_of(place) <= found.last else None

    def count(self, low: int, high: int) -> int:
        """See `Scope`; sessions are taken to be alike."""
        first, last = uid_of(low), uid_of(high)
        if first == last:
            return position_of(high) - position_of(low) + 1
        some = [first + (last - first) * step // 8 for step in range(9)]
        sizes = [0 if (each := self._of_owner(uid)) is None else each.last for uid in dict.fromkeys(some)]
        return max(1, sum(sizes) * (last - first + 1) // len(sizes))

    def owned(self, low: int, high: int, *, newest: bool) -> Iterator[tuple[int, int]]:
        """See `Scope`."""
        if self._owners is not None:
            yield low, high
            return
        owners = self._owners_of(self._reads.readable(self._namespace, self._agent_id, None))
        ordered = reversed(owners) if newest else owners
        found = (each.range for uid in ordered if (each := self._of_owner(uid)) is not None)
        yield from self._clipped(found)

    def _clipped(self, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        for low, high in ranges:
            if low <= self._high and high >= self._low:
                yield max(low, self._low), min(high, self._high)

    def _owners_of(self, records: Sequence[SessionRecord]) -> list[int]:
        uids = {record.uid for record in records}
        for record in records:
            if record.parent is not None:
                uids.update(owner.uid for owner, _, _ in spans(self._reads, record, 1, record.shared))
        return sorted(uids)

    def _of_owner(self, uid: int) -> Stretch | None:
        if uid not in self._stretches:
            owner = self._known.get(uid) or self._reads.owner(uid)
            told = None if owner is None else self._told(owner)
            if told is not None:
                told = told._replace(
                    first=max(told.first, self._hidden.get(uid, 0) + 1), last=min(told.last, MOST_POSITION)
                )
            self._stretches[uid] = told if told is not None and told.first <= told.last else None
        return self._stretches[uid]

    def _told(self, owner: SessionRecord) -> Stretch | None:
        """The owner's messages, by way of itself or else of the fork that shares most of them."""
        first = owner.shared + 1
        if self._may_read(owner):
            return Stretch(owner, owner, first, owner.message_count)
        best: Stretch | None = None
        waiting = [(owner, owner.message_count)]
        while waiting:
            parent, last = waiting.pop()
            for child in self._reads.children_of(parent.uid):
                shared = min(last, child.shared)
                if shared < first:
                    continue
                waiting.append((child, shared))
                if self._may_read(child) and (best is None or shared > best.last):
                    best = Stretch(child, owner, first, shared)
        return best

    def _may_read(self, record: SessionRecord) -> bool:
        return (
            record.ref.namespace == self._namespace
            and record.ref not in self._without
            and (self._agent_id is None or record.agent_id in (None, self._agent_id))
        )
