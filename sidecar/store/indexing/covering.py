"""What the index covers of a session, and what must be gathered from the messages themselves."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from sidecar.store.indexing.gathering import Gathered
from sidecar.store.indexing.shelf import Shelf, View
from sidecar.store.lineage import spans
from sidecar.store.primitives import RowReads
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.search import Extract, Searchable

_BATCH = 50
"""Messages that are gathered in one go."""
_MOST = 20_000
"""Messages of a gap that are gathered for a search at most, the newest, in stores that index."""
_STEP = 4096
_REMEMBERED = 30_000
"""Gathered messages that are kept for the next search, in stores that index."""


class SessionChanged(Exception):
    """Raised inside a search when messages were moved or erased meanwhile: begin anew."""


class SearchReads(RowReads, Protocol):
    """Reads for a search, of one state of the store."""

    indexes: bool
    """Whether messages come to be on shelves by and by; otherwise all that was gathered is kept."""

    def shelves(self, uid: int, first: int, last: int) -> list[Shelf]:
        """What is indexed of the rows that a session owns, where it overlaps these positions, in order."""
        ...


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
        whole: list[Part] = []
        free = owner.shared + 1
        for shelf in reads.shelves(owner.uid, free, end):
            if shelf.first > free:
                whole.append(Part(owner, free, shelf.first - 1, None, free))
            free = shelf.first + shelf.count
            whole.append(Part(owner, shelf.first, free - 1, shelf, shelf.first))
        if free <= end:
            whole.append(Part(owner, free, end, None, free))
        cut = (part._replace(first=max(part.first, start), last=min(part.last, end)) for part in whole)
        found += [part for part in cut if part.first <= part.last]
    return found


def newest_of_gap(reads: SearchReads, part: Part) -> Part:
    """As much of a gap as is gathered for a search."""
    over = part.last - part.start + 1 - _MOST
    if not reads.indexes or over <= 0:
        return part
    start = part.start + -(-over // _STEP) * _STEP
    return part._replace(start=start, first=max(start, part.first))


class Gaps:
    """Gathers what is on no shelf, and keeps it for the next search."""

    def __init__(self, extract: Extract) -> None:
        self._extract = extract
        self._kept: dict[tuple[int, int, int], Gathered] = {}
        """By uid and revision of the owner, and first position; the one used last is at the end."""

    def extracted(self, owner: SessionRecord, row: MessageRow) -> Searchable:
        """What is searched of a message."""
        return self._extract(owner.message_format, row.body)

    def gathered(self, part: Part) -> Gathered | None:
        """The gap of this part, `None` until all is gathered."""
        kept = self._kept.get(_key(part))
        return kept if kept is not None and kept.first + kept.count > part.last else None

    def gather(self, reads: SearchReads, part: Part) -> None:
        """Gather some more of this part's gap."""
        key = _key(part)
        kept = self._kept.pop(key, None) or Gathered(key[2])
        self._kept[key] = kept
        free = kept.first + kept.count
        for row in reads.rows(part.owner.uid, free, min(part.last, free + _BATCH - 1)):
            kept.add(row, self.extracted(part.owner, row))
        self._forget(reads, part.owner)

    def forget_gone(self, is_there: Callable[[int], bool]) -> None:
        """Drop what was gathered of sessions that are no longer there."""
        for key in list(self._kept):
            if not is_there(key[0]):
                del self._kept[key]

    def _forget(self, reads: SearchReads, owner: SessionRecord) -> None:
        for key in list(self._kept):
            if key[0] == owner.uid and key[1] != owner.revision:
                del self._kept[key]
        if reads.indexes:
            while len(self._kept) > 1 and sum(each.count for each in self._kept.values()) > _REMEMBERED:
                del self._kept[next(iter(self._kept))]


def _key(part: Part) -> tuple[int, int, int]:
    return part.owner.uid, part.owner.revision, part.start


def unchanged(reads: SearchReads, record: SessionRecord) -> SessionRecord:
    """The session as it is now.

    Raises:
        SessionChanged: more has happened to it than that messages were added.
    """
    now = reads.session(record.ref)
    if now is None or now.uid != record.uid or now.revision != record.revision:
        raise SessionChanged
    return now
