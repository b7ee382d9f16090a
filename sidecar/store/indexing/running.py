"""A search under way: advanced for a short time, again and again, until it has its answer."""

import time
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

from sidecar.store.errors import StoreUnavailable
from sidecar.store.indexing.covering import SearchReads, SessionChanged

_T = TypeVar("_T")

_AT_ONCE_FROM = 3
"""A search that had to begin anew so often is carried out without a pause."""
_SLICE_S = 0.02


class RunningSearch(Generic[_T]):
    """One search; what it finds of a session is of one state of it."""

    def __init__(self, start: Callable[[SearchReads], Generator[None, None, _T]]) -> None:
        self._start = start
        self._steps: Generator[None, None, _T] | None = None
        self._begun = 0

    def restart(self) -> None:
        """Begin anew, because a step failed."""
        self._steps = None
        self._begun = 0

    def advance(self, reads: SearchReads) -> _T | None:
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

    def _begin(self, reads: SearchReads) -> Generator[None, None, _T]:
        self._begun += 1
        self._steps = self._start(reads)
        return self._steps
