"""What the index covers of a session, and what must be gathered from the messages themselves."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from sidecar.store.indexing.gathering import Gathered
from sidecar.store.indexing.shelf import Shelf, View
from sidecar.store.lineage import spans
from sidecar.store.primitives import RowReads
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.search import Extract, Searchable

if TYPE_CHECKING:
    from sidecar.store.indexing.catalogue import Catalogues
    from sidecar.store.indexing.segments import Segment

_BATCH = 50
"""Messages that are gathered in one go."""
MOST_GATHERED = 20_000
"""Messages of a gap that are gathered for a search at most, the newest, in stores that index."""
_STEP = 4096
_REMEMBERED = 30_000
"""Gathered messages that are kept for the next search, in stores that index."""


_C = TypeVar("_C")


class SessionChanged(Exception):
    """Raised inside a search when messages were moved or erased meanwhile: begin anew."""


class SearchReads(RowReads, Protocol):
    """Reads for a search, of one state of the store."""

    indexes: bool
    """Whether messages come to be on shelves by and by; otherwise all that was gathered is kept."""

    def rows_at(self, uid: int, positions: Sequence[int]) -> list[MessageRow]:
        """The rows that a session owns at these positions, at most some hundred, in any order."""
        ...

    def segments(self, uid: int, first: int, last: int) -> "list[Segment]":
        """What is indexed of the rows that a session owns, where it overlaps these positions, in order."""
        ...

    def segments_in(self, namespace: str) -> "list[Segment]":
        """What is indexed of the rows of all sessions of a namespace, by uid of the owner and position."""
        ...

    def segments_after(self, segment: int) -> "list[Segment]":
        """What was indexed since, of whatever namespace, by number; bundles have the uid 0."""
        ...

    def bundle(self, number: int) -> "Segment | None":
        """The segment with the blocks of a bundle."""
        ...

    def shelf(self, segment: "Segment") -> Shelf:
        """The messages of a segment."""
        ...

    def bundle_shelf(self, bundle: "Segment", held: "Sequence[Segment]") -> Shelf:
        """All messages of a bundle, of which those in `held` are of sessions that are searched."""
        ...

    def changed_since(self, namespace: str, agent_id: str | None, stamp_ms: int) -> list[SessionRecord]:
        """As `readable`, of sessions that were written to at this time or since."""
        ...

    def sums(self, namespace: str, agent_id: str | None) -> "Sums | None":
        """What tells whether something has changed; `None` where it is not worth asking."""
        ...

    def readable(self, namespace: str, agent_id: str | None) -> list[SessionRecord]:
        """The sessions of a namespace that are this agent's or nobody's (`None`: all), by rising uid."""
        ...


class Sums(NamedTuple):
    """Sums over sessions and segments: they differ where one of them has changed, was added or has gone."""

    sessions: int
    uids: int
    stamps: int
    messages: int
    revisions: int
    shared: int
    segments: int
    numbers: int
    owners: int
    firsts: int
    bundles: int


class Part(NamedTuple):
    """Messages of one owner that are on one shelf, or on none."""

    owner: SessionRecord
    first: int
    last: int
    shelf: Shelf | None
    start: int
    """The first position of the shelf or gap, which may be before `first`."""

    def view(self, shelf: Shelf) -> View:
        """The part of a shelf that this is."""
        return View(shelf, self.first - shelf.first, self.last + 1 - shelf.first)


def parts(reads: SearchReads, record: SessionRecord, first: int, last: int) -> list[Part]:
    """The messages at these positions, part by part."""
    found: list[Part] = []
    for owner, start, end in spans(reads, record, first, min(last, record.message_count)):
        found += parts_of_owner(reads, owner, start, end)
    return found


def parts_of_owner(reads: SearchReads, owner: SessionRecord, first: int, last: int) -> list[Part]:
    """The same of messages that all belong to one session."""
    shelves = map(reads.shelf, reads.segments(owner.uid, owner.shared + 1, last))
    return parts_on(shelves, owner, first, last)


def parts_on(shelves: Iterable[Shelf], owner: SessionRecord, first: int, last: int) -> list[Part]:
    """The same where the shelves are known, all of them in order."""
    known = ((shelf.first, shelf.count, shelf) for shelf in shelves)
    return [Part(owner, *cover) for cover in covers(known, owner, first, last)]


def covers(
    covering: Iterable[tuple[int, int, _C]], owner: SessionRecord, first: int, last: int
) -> list[tuple[int, int, _C | None, int]]:
    """The first and last message of every part, what covers it, and where that begins or the gap does.

    `covering` are first position, number of messages, and what covers them, in order.
    """
    whole: list[tuple[int, int, _C | None, int]] = []
    free = owner.shared + 1
    for start, count, each in covering:
        if start > free:
            whole.append((free, start - 1, None, free))
        free = start + count
        whole.append((start, free - 1, each, start))
    if free <= last:
        whole.append((free, last, None, free))
    cut = ((max(low, first), min(high, last), each, start) for low, high, each, start in whole)
    return [part for part in cut if part[0] <= part[1]]


def newest_of_gap(reads: SearchReads, part: Part, most: int = MOST_GATHERED) -> Part:
    """As much of a gap as is gathered for a search."""
    over = part.last - part.start + 1 - most
    if not reads.indexes or over <= 0:
        return part
    start = part.start + -(-over // _STEP) * _STEP
    return part._replace(start=start, first=max(start, part.first))


class _Key(NamedTuple):
    """Of what was gathered: uid and revision of the owner, and the first position."""

    uid: int
    revision: int
    start: int


class Gaps:
    """Gathers what is on no shelf, and keeps it for the next search."""

    def __init__(self, extract: Extract) -> None:
        self._extract = extract
        self._kept: dict[_Key, Gathered] = {}
        """The one used last is at the end."""
        self._keys: dict[int, set[_Key]] = {}
        """By uid of the owner."""
        self._messages = 0
        self.catalogues: Catalogues | None = None
        """Made when all sessions are searched for the first time."""

    def extracted(self, owner: SessionRecord, row: MessageRow) -> Searchable:
        """What is searched of a message."""
        return self._extract(owner.message_format, row.body)

    def gathered(self, part: Part) -> Gathered | None:
        """The gap of this part, `None` until all is gathered."""
        kept = self._kept.get(_key(part))
        return kept if kept is not None and kept.first + kept.count > part.last else None

    def gather(self, reads: SearchReads, part: Part) -> bool:
        """Gather some more of this part's gap; whether there was more."""
        key = _key(part)
        kept = self._kept.pop(key, None) or Gathered(key.start)
        self._kept[key] = kept
        self._keys.setdefault(key.uid, set()).add(key)
        free = kept.first + kept.count
        rows = reads.rows(part.owner.uid, free, min(part.last, free + _BATCH - 1))
        for row in rows:
            kept.add(row, self.extracted(part.owner, row))
        self._messages += len(rows)
        self._forget_before(key)
        while reads.indexes and self._messages > _REMEMBERED and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))
        return bool(rows)

    def forget_gone(self, is_there: Callable[[int], bool]) -> None:
        """Drop what was gathered of sessions that are no longer there."""
        for uid in list(self._keys):
            if not is_there(uid):
                for key in list(self._keys[uid]):
                    self._drop(key)

    def _forget_before(self, newest: _Key) -> None:
        """Drop what was gathered of earlier revisions of the same session."""
        for key in list(self._keys[newest.uid]):
            if key.revision != newest.revision:
                self._drop(key)

    def _drop(self, key: _Key) -> None:
        self._messages -= self._kept.pop(key).count
        keys = self._keys[key.uid]
        keys.discard(key)
        if not keys:
            del self._keys[key.uid]


def _key(part: Part) -> _Key:
    return _Key(part.owner.uid, part.owner.revision, part.start)


def unchanged(reads: SearchReads, record: SessionRecord) -> SessionRecord:
    """The session as it is now.

    Raises:
        SessionChanged: more has happened to it than that messages were added.
    """
    now = reads.session(record.ref)
    if now is None or now.uid != record.uid or now.revision != record.revision:
        raise SessionChanged
    return now
