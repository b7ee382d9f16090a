"""Searches for a literal or a regular expression, in order: what the index names is looked at, and no more.

Where no index can help, every message is looked at, for as long as a search may take.
"""

from collections.abc import Callable, Generator, Iterator
from heapq import merge
from itertools import islice

from sidecar.store.records import MessageRow
from sidecar.store.search import Extract, SearchQuery
from sidecar.store.search.query import matcher, narrowing
from sidecar.store.search.rank import WAITING_FOR_ANSWER
from sidecar.store.search.scope import Budget, Scope, SearchReads, place_of

_FIRST_BATCH = 20
"""Messages that are read in one go; the hits may be among the first."""
_BATCH = 100
_CANDIDATES = 500
"""Places that the database is asked for in one go."""
_MOST_WAITING = 200_000
_MOST_BYTES = 1 << 30
"""Bytes of messages that are read for one search."""


class Scan:
    """One search; `steps` carries it out."""

    def __init__(
        self, reads: SearchReads, scope: Scope, query: SearchQuery, extract: Extract, budget: Budget
    ) -> None:
        """Raises `SearchError` where the query cannot be answered."""
        self._reads = reads
        self._scope = scope
        self._matcher = matcher(query, budget.over)
        self._narrowed = narrowing(query)
        self._newest = query.newest_first
        self._most_waiting = WAITING_FOR_ANSWER if query.for_answer else _MOST_WAITING
        self._left = query.limit
        self._bytes_left = _MOST_BYTES
        self._extract = extract
        self._budget = budget
        self.found: list[int] = []
        """Places."""
        self.complete = True
        """Whether everything up to `reached` was looked at to its end."""
        self.reached: int | None = None
        """The place that was looked at last, `None` where that was all of them."""

    @property
    def full(self) -> bool:
        """Whether the search ended because everything that was asked for is found."""
        return self._left <= 0

    def steps(self) -> Generator[None, None, None]:
        """Search; it may be given up at every `yield`."""
        candidates = self._candidates()
        size = _FIRST_BATCH
        last: int | None = None
        while some := list(islice(candidates, size)):
            rows: dict[int, MessageRow] = {}
            if not self.full:
                rows = {place_of(row.session, row.position): row for row in self._reads.rows_at(some)}
            for place in some:
                if self.full or self._bytes_left < 0 or (last is not None and self._budget.over()):
                    self.reached = last
                    return
                if place in rows:
                    self._look_at(place, rows[place])
                last = place
            size = min(2 * size, _BATCH)
            yield

    def _look_at(self, place: int, row: MessageRow) -> None:
        stretch = self._scope.stretch(place)
        if stretch is None or not self._narrowed.admits(row):
            return
        self._bytes_left -= len(row.body)
        searchable = self._extract(stretch.owner, row.body)
        if not self._narrowed.says(searchable):
            return
        matches = self._matcher.matches(searchable.text)
        if matches:
            self.found.append(place)
            self._left -= 1
        elif matches is None:
            self.complete = False

    def _candidates(self) -> Iterator[int]:
        """The places to look at, in the order asked for."""
        ranges = self._scope.ranges()
        ask = self._asking()
        for low, high in reversed(ranges) if self._newest else ranges:
            if ask is None:
                yield from self._every(low, high)
                continue
            waiting = self._reads.not_indexed(low, high, self._most_waiting + 1)
            if len(waiting) > self._most_waiting:
                self.complete = False
                waiting = waiting[-self._most_waiting :]
            if self._newest:
                waiting.reverse()
            yield from merge(self._indexed(ask, low, high), waiting, reverse=self._newest)

    def _asking(self) -> Callable[[int, int], list[int]] | None:
        """How the database is asked for candidates between two places; `None` where it cannot tell."""
        reads, newest = self._reads, self._newest
        groups = [*self._matcher.groups, *self._narrowed.groups]
        parts = self._matcher.parts if reads.has_parts else []
        if not groups and not parts:
            return None
        return lambda low, high: reads.candidates(groups, parts, low, high, _CANDIDATES, newest=newest)

    def _indexed(self, ask: Callable[[int, int], list[int]], low: int, high: int) -> Iterator[int]:
        while low <= high:
            some = ask(low, high)
            yield from some
            if len(some) < _CANDIDATES:
                return
            if self._newest:
                high = some[-1] - 1
            else:
                low = some[-1] + 1

    def _every(self, low: int, high: int) -> Iterator[int]:
        for first, last in self._scope.owned(low, high, newest=self._newest):
            yield from range(last, first - 1, -1) if self._newest else range(first, last + 1)
