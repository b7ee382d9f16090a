"""Decides what is indexed next, behind the acknowledgement, in short steps on the writer's thread."""

import time
from collections import deque
from collections.abc import Callable, Iterator

from sidecar.store.indexing import jobs
from sidecar.store.indexing.jobs import IndexJobs
from sidecar.store.search import Extract
from sidecar.store.sqlite.connection import Connection
from sidecar.store.sqlite.index_tables import IndexTables

_STEP_S = 0.002
_MOST_BEHIND = 20_000
"""Writes, about, from which indexing no longer waits for a pause."""

_GROWN = (
    "SELECT uid FROM sessions LEFT JOIN (SELECT session, sum(size) AS indexed FROM search_segments "
    "WHERE live GROUP BY session) ON session = uid "
    "WHERE message_count - shared - coalesce(indexed, 0) >= ? AND updated_ms < ?"
)
_EVER = 1 << 62


class Indexer:
    """The sessions whose index is to be brought on, and the step that is next."""

    def __init__(self, connection: Connection, extract: Extract, note_rewriting: Callable[[], None]) -> None:
        self._tables = IndexTables(connection, note_rewriting)
        self._jobs = IndexJobs(self._tables, extract)
        self._grown: deque[int] = deque()
        self._rested: deque[int] = deque()
        """Sessions with few messages to index, which are looked at when there is nothing else to do."""
        self._writes = 0
        self._steps: Iterator[None] | None = self._begin()

    @property
    def has_work(self) -> bool:
        """Whether there is something to do."""
        return self._steps is not None

    @property
    def lags(self) -> bool:
        """Whether so much is to be done that it should not wait for a pause."""
        return self._writes > _MOST_BEHIND

    def note(self, sessions: set[int], writes: int) -> None:
        """Say which sessions have changed, and by how many writes."""
        self._writes += writes
        self._grown.extend(sessions.difference(self._grown))
        if self._steps is None and self._grown:
            self._steps = self._work()

    def step(self) -> None:
        """Do about 2 ms of work. A fault is logged, and ends the work until more is written."""
        until = time.monotonic() + _STEP_S
        try:
            while self._steps is not None and time.monotonic() < until:
                if next(self._steps, self) is self:
                    self._steps = None
                    self._writes = 0
        except Exception as error:
            _report(error)
            self._steps = None
            self._grown.clear()
            self._rested.clear()
            self._writes = 0

    def _begin(self) -> Iterator[None]:
        with self._tables.step(None):
            self._tables.adopt_format()
        self._jobs.take_over(self._tables.retired())
        self._grown.extend(uid for (uid,) in self._tables.query(_GROWN, (jobs.CHUNK, _EVER)))
        rested = self._tables.query(_GROWN, (jobs.FEW, jobs.rested_before_ms()))
        self._rested.extend(uid for (uid,) in rested)
        yield
        yield from self._work()

    def _work(self) -> Iterator[None]:
        while True:
            yield from self._jobs.clean()
            waiting = self._grown or self._rested
            if not waiting:
                return
            uid = waiting[0]
            done = (yield from self._jobs.merge(uid)) or (yield from self._jobs.build(uid))
            if not done:
                waiting.remove(uid)


def _report(error: Exception) -> None:
    import logging

    logging.getLogger(__name__).error("indexing failed; searches look at the messages", exc_info=error)
