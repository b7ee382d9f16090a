"""A search under way: advanced for a short time, again and again, until it has its answer."""

import time

from sidecar.store.contract import SessionRef, StoreUnavailable
from sidecar.store.indexing.covering import Gaps, SearchReads, SessionChanged
from sidecar.store.indexing.searching import Steps, search_steps
from sidecar.store.search import SearchQuery, SearchResult

_AT_ONCE_FROM = 3
"""A search that had to begin anew so often is carried out without a pause."""
_SLICE_S = 0.02


class RunningSearch:
    """One search; what it finds is of one state of the session."""

    def __init__(self, gaps: Gaps, ref: SessionRef, query: SearchQuery) -> None:
        self._gaps = gaps
        self._ref = ref
        self._query = query
        self._steps: Steps | None = None
        self._begun = 0

    def advance(self, reads: SearchReads) -> SearchResult | None:
        """The answer, `None` where it takes more time. `reads` must show one state during the call.

        Raises:
            SearchError: the query cannot be answered.
            SessionMissing: the session is another agent's.
        """
        until = time.monotonic() + _SLICE_S
        while True:
            try:
                next(self._begin(reads) if self._steps is None else self._steps)
            except StopIteration as done:
                return done.value
            except SessionChanged:
                self._steps = None
                if self._begun > _AT_ONCE_FROM:
                    raise StoreUnavailable("the session keeps changing", retryable=True) from None
            if self._begun < _AT_ONCE_FROM and time.monotonic() >= until:
                return None

    def _begin(self, reads: SearchReads) -> Steps:
        self._begun += 1
        self._steps = search_steps(reads, self._gaps, self._ref, self._query)
        return self._steps
