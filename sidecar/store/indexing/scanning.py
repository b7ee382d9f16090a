"""Searches for a literal or a regular expression over the whole history, in order."""

from collections.abc import Generator, Iterator
from typing import NamedTuple

from sidecar.store.indexing.covering import Gaps, Part, SearchReads, parts, unchanged
from sidecar.store.indexing.facets import facets, narrowing
from sidecar.store.indexing.matching import matcher
from sidecar.store.indexing.pieces import candidates
from sidecar.store.indexing.segments import SegmentShelf
from sidecar.store.indexing.shelf import View
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.search import SearchQuery

_BATCH = 100
"""Messages that are read in one go."""
_FIRST_BATCH = 20
"""Of candidates, of which the hits may be among the first."""
_AT_FIRST = 4_096
"""Messages whose candidates are worked out first, as the hits are often among them; then ever more are."""
_MOST_BYTES = 1 << 30
"""Bytes of messages that are read for one search."""


class Wanted:
    """What a query looks for, and what may still be read for it."""

    def __init__(self, query: SearchQuery) -> None:
        """Raises `SearchError` where the query cannot be answered."""
        self.matcher = matcher(query)
        self.narrowing = narrowing(query)
        self.backwards = query.newest_first
        self.hits_left = query.limit
        self.bytes_left = _MOST_BYTES

    @property
    def satisfied(self) -> bool:
        """Whether the search ends, because all hits are found or enough was read."""
        return self.hits_left <= 0 or self.bytes_left < 0


class Scanned(NamedTuple):
    """What was found in the messages of a session."""

    positions: list[int]
    reached: int | None
    """The position that was looked at last, `None` where that was all of them."""


class Scan:
    """One search: candidates of the index, and every message where the index cannot tell."""

    def __init__(
        self,
        reads: SearchReads,
        gaps: Gaps,
        record: SessionRecord,
        wanted: Wanted,
        first: int,
        last: int,
        candidates: list[int] | None = None,
    ) -> None:
        """`candidates` are the positions to look at, in order, where they are known."""
        self._reads = reads
        self._gaps = gaps
        self._record = record
        self._wanted = wanted
        self._backwards = wanted.backwards
        self._found: list[int] = []
        self._known = candidates
        self._shelf: SegmentShelf | None = None
        """The one that was looked at last, with what was read of it."""
        self._passed = 0
        """Messages whose candidates were worked out."""
        self._first, self._last = first, last
        """What is still to be looked at."""

    def steps(self) -> Generator[None, None, Scanned]:
        """The search itself."""
        while self._first <= self._last:
            candidates, end = yield from self._next_candidates()
            for some in _batches(candidates):
                stopped = self._look_at(some)
                if stopped is not None:
                    self._move_past(stopped)
                    return Scanned(self._found, stopped if self._first <= self._last else None)
                yield from self._pause()
            self._move_past(end)
            if self._first <= self._last:
                yield from self._pause()
        return Scanned(self._found, None)

    def _next_candidates(self) -> Generator[None, None, tuple[list[int], int]]:
        """Positions to look at in the next part, in the order asked for, and where that part ends."""
        if self._known is not None:
            return self._known[::-1] if self._backwards else self._known, (
                self._first if self._backwards else self._last
            )
        while True:
            remaining = parts(self._reads, self._record, self._first, self._last)
            part = remaining[-1 if self._backwards else 0]
            view = self._view(part)
            if view is not None:
                break
            if self._reads.indexes:
                return self._every_position(part)
            self._gaps.gather(self._reads, part)
            yield from self._pause()
        part, view = self._near(part, view)
        ordinals = candidates(view, self._wanted.matcher.pieces)
        admitted = view.admitted(self._wanted.narrowing)
        if ordinals is None:
            if admitted is None:
                return self._every_position(part)
            ordinals = admitted
        elif admitted is not None:
            ordinals &= admitted
        positions = sorted((view.shelf.first + each for each in ordinals), reverse=self._backwards)
        return positions, part.first if self._backwards else part.last

    def _near(self, part: Part, view: View) -> tuple[Part, View]:
        """As much of a part as there was before it, at least."""
        over = part.last - part.first + 1 - max(_AT_FIRST, self._passed)
        if over > 0:
            if self._backwards:
                part = part._replace(first=part.first + over)
                view = view._replace(low=view.low + over)
            else:
                part = part._replace(last=part.last - over)
                view = view._replace(high=view.high - over)
        self._passed += view.high - view.low
        return part, view

    def _view(self, part: Part) -> View | None:
        shelf = part.shelf
        if shelf is None:
            shelf = self._gaps.gathered(part)
        elif isinstance(shelf, SegmentShelf):
            if self._shelf is None or self._shelf.segment != shelf.segment:
                self._shelf = shelf
            shelf = self._shelf
        return None if shelf is None else part.view(shelf)

    def _every_position(self, part: Part) -> tuple[list[int], int]:
        """A stretch of a part; the rest of it comes next."""
        if self._backwards:
            first = max(part.first, part.last - _BATCH + 1)
            return list(range(part.last, first - 1, -1)), first
        last = min(part.last, part.first + _BATCH - 1)
        return list(range(part.first, last + 1)), last

    def _look_at(self, positions: list[int]) -> int | None:
        """Where the search ends, which is at the last hit of a page or where enough was read."""
        wanted = self._wanted
        for owner, row in self._rows(positions):
            wanted.bytes_left -= len(row.body)
            if self._matches(owner, row):
                self._found.append(row.position)
                wanted.hits_left -= 1
            if wanted.satisfied:
                return row.position
        return None

    def _rows(self, positions: list[int]) -> list[tuple[SessionRecord, MessageRow]]:
        low, high = min(positions), max(positions)
        found: list[tuple[SessionRecord, MessageRow]] = []
        for part in parts(self._reads, self._record, low, high):
            uid = part.owner.uid
            if high - low < len(positions) * 2:
                rows = self._reads.rows(uid, part.first, part.last)
            else:
                rows = self._reads.rows_at(
                    uid, [each for each in positions if part.first <= each <= part.last]
                )
            found += [(part.owner, row) for row in rows]
        wanted = set(positions)
        return sorted(
            ((owner, row) for owner, row in found if row.position in wanted),
            key=lambda pair: pair[1].position,
            reverse=self._backwards,
        )

    def _matches(self, owner: SessionRecord, row: MessageRow) -> bool:
        narrowed = self._wanted.narrowing
        if not narrowed.admits(row.timestamp_ms):
            return False
        searchable = self._gaps.extracted(owner, row)
        if narrowed.groups and not narrowed.agrees(facets(row, searchable)):
            return False
        return self._wanted.matcher.matches(searchable.text)

    def _move_past(self, position: int) -> None:
        if self._backwards:
            self._last = position - 1
        else:
            self._first = position + 1

    def _pause(self) -> Generator[None, None, None]:
        yield
        self._record = unchanged(self._reads, self._record)


def _batches(positions: list[int]) -> Iterator[list[int]]:
    """All of them, first in small portions."""
    start, size = 0, _FIRST_BATCH
    while start < len(positions):
        yield positions[start : start + size]
        start += size
        size = min(2 * size, _BATCH)
