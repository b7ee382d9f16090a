"""Decides what is indexed next, behind the acknowledgement, in short steps on the writer's thread."""

import time
from collections import deque
from collections.abc import Callable, Iterator

from sidecar.store.indexing import jobs
from sidecar.store.indexing.bundles import bundle
from sidecar.store.indexing.jobs import IndexJobs
from sidecar.store.search import Extract
from sidecar.store.sqlite.connection import Connection
from sidecar.store.sqlite.index_tables import IndexTables

_STEP_S = 0.002
_LATER_S = 1.0
"""So that a session is surely at rest when it is looked at."""
_MOST_BEHIND = 20_000
"""Writes, about, from which indexing no longer waits for a pause."""

_GROWN = (
    "SELECT uid FROM sessions LEFT JOIN (SELECT session, sum(size) AS indexed FROM search_segments "
    "WHERE live GROUP BY session) ON session = uid "
    "WHERE message_count - shared - coalesce(indexed, 0) >= ? AND updated_ms < ?"
)
_EVER = 1 << 62
_BUNDLED_EVERY = 256
"""Sessions at rest after which there may be something to bundle; what that frees is then used again."""
_REMEMBERED = 20_000
"""Sessions that are looked at again once they are at rest; of more, the next start sees to it."""


class Indexer:
    """The sessions whose index is to be brought on, and the step that is next."""

    def __init__(self, connection: Connection, extract: Extract, note_rewriting: Callable[[], None]) -> None:
        self._tables = IndexTables(connection, note_rewriting)
        self._jobs = IndexJobs(self._tables, extract)
        self._grown: deque[int] = deque()
        self._rested: deque[int] = deque()
        """Sessions with few messages to index, which are looked at when there is nothing else to do."""
        self._awake: dict[int, float] = {}
        """Sessions that were written to, with the time at which they will be at rest; the first one first."""
        self._may_bundle = True
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
        rested_at = time.monotonic() + jobs.RESTED_MS / 1000 + _LATER_S
        for uid in sessions:
            self._awake.pop(uid, None)
            self._awake[uid] = rested_at
        while len(self._awake) > _REMEMBERED:
            del self._awake[next(iter(self._awake))]
        if self._steps is None and self._grown:
            self._steps = self._work()

    @property
    def rests_s(self) -> float | None:
        """How long there is nothing to do if nothing is written, `None` for ever."""
        due = next(iter(self._awake.values()), None)
        return None if due is None else max(0.0, due - time.monotonic())

    def look_at_rested(self) -> None:
        """Begin with the sessions that came to rest since."""
        now = time.monotonic()
        due = [uid for uid, rested_at in self._awake.items() if rested_at <= now]
        for uid in due:
            del self._awake[uid]
        if due:
            self._rested.extend(uid for uid in due if uid not in self._rested)
            self._may_bundle = True
            self._steps = self._steps or self._work()

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
                if not self._may_bundle:
                    return
                self._may_bundle = False
                if (yield from bundle(self._tables, self._jobs.take_over)):
                    self._may_bundle = True
                continue
            uid = waiting[0]
            done = (yield from self._jobs.merge(uid)) or (yield from self._jobs.build(uid))
            if not done:
                waiting.remove(uid)
                if waiting is self._rested and len(waiting) % _BUNDLED_EVERY == 0:
                    yield from bundle(self._tables, self._jobs.take_over)


def _report(error: Exception) -> None:
    import logging

    logging.getLogger(__name__).error("indexing failed; searches look at the messages", exc_info=error)
