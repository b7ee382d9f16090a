"""Searches for a literal or a regular expression over the whole history, in order."""

from collections.abc import Generator

from sidecar.store.indexing.covering import Gaps, Part, SearchReads, parts, unchanged
from sidecar.store.indexing.facets import facets, narrowing
from sidecar.store.indexing.matching import matcher
from sidecar.store.indexing.paging import Page, encode_page
from sidecar.store.indexing.pieces import candidates
from sidecar.store.indexing.shelf import View
from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.search import SearchHit, SearchQuery, SearchResult

_BATCH = 100
"""Messages that are read in one go."""
_MOST_BYTES = 1 << 30
"""Bytes of messages that are read for one search."""


class Scan:
    """One search: candidates of the index, and every message where the index cannot tell."""

    def __init__(
        self,
        reads: SearchReads,
        gaps: Gaps,
        record: SessionRecord,
        query: SearchQuery,
        first: int,
        last: int,
        page: Page | None,
    ) -> None:
        self._reads = reads
        self._gaps = gaps
        self._record = record
        self._backwards = query.newest_first
        self._limit = query.limit
        self._newest = last
        self._narrowing = narrowing(query)
        self._matcher = matcher(query)
        self._hits: list[SearchHit] = []
        self._bytes = 0
        self._first, self._last = first, last
        """What is still to be looked at."""
        if page is not None:
            self._move_past(page.reached)

    def steps(self) -> Generator[None, None, SearchResult]:
        """The search itself."""
        while self._first <= self._last:
            wanted, end = yield from self._next_candidates()
            while wanted:
                batch, wanted = wanted[:_BATCH], wanted[_BATCH:]
                stopped = self._look_at(batch)
                if stopped is not None:
                    return self._result(stopped)
                yield from self._pause()
            self._move_past(end)
            yield from self._pause()
        return SearchResult(self._hits, True)

    def _next_candidates(self) -> Generator[None, None, tuple[list[int], int]]:
        """Positions to look at in the next part, in the order asked for, and where that part ends."""
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
        ordinals = candidates(view, self._matcher.pieces)
        admitted = view.admitted(self._narrowing)
        if ordinals is None:
            if admitted is None:
                return self._every_position(part)
            ordinals = admitted
        elif admitted is not None:
            ordinals &= admitted
        positions = sorted((view.shelf.first + each for each in ordinals), reverse=self._backwards)
        return positions, part.first if self._backwards else part.last

    def _view(self, part: Part) -> View | None:
        shelf = part.shelf
        if shelf is None:
            shelf = self._gaps.gathered(part)
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
        for owner, row in self._rows(positions):
            self._bytes += len(row.body)
            if self._matches(owner, row):
                self._hits.append(SearchHit(row.position, 1.0))
            if len(self._hits) == self._limit or self._bytes > _MOST_BYTES:
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
                inside = (each for each in positions if part.first <= each <= part.last)
                rows = [row for each in inside for row in self._reads.rows(uid, each, each)]
            found += [(part.owner, row) for row in rows]
        wanted = set(positions)
        return sorted(
            ((owner, row) for owner, row in found if row.position in wanted),
            key=lambda pair: pair[1].position,
            reverse=self._backwards,
        )

    def _matches(self, owner: SessionRecord, row: MessageRow) -> bool:
        if not self._narrowing.admits(row.timestamp_ms):
            return False
        searchable = self._gaps.extracted(owner, row)
        if self._narrowing.groups and not self._narrowing.agrees(facets(row, searchable)):
            return False
        return self._matcher.matches(searchable.text)

    def _result(self, reached: int) -> SearchResult:
        """A page with its cursor, unless it ends with the very last message."""
        self._move_past(reached)
        if self._first > self._last:
            return SearchResult(self._hits, True)
        cursor = encode_page(Page(self._record.revision, self._newest, reached))
        return SearchResult(self._hits, len(self._hits) == self._limit, cursor)

    def _move_past(self, position: int) -> None:
        if self._backwards:
            self._last = position - 1
        else:
            self._first = position + 1

    def _pause(self) -> Generator[None, None, None]:
        yield
        self._record = unchanged(self._reads, self._record)
