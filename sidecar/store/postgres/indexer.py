"""The thread that indexes what this process has written, and what others have left, in PostgreSQL."""

import threading
import time
from collections.abc import Iterator
from math import inf

import psycopg

from sidecar.store.indexing import jobs
from sidecar.store.indexing.bundles import bundle
from sidecar.store.postgres.connection import connect
from sidecar.store.postgres.index_tables import IndexTables
from sidecar.store.search import Extract

_PAUSE_S = 0.05
"""So long nothing is written before indexing begins, so that it never delays a burst of writes."""
_MOST_BEHIND = 20_000
"""Messages, about, from which indexing no longer waits for a pause."""
_STEP_S = 0.004
_BREATH_S = 0.0005
"""Between steps, so that other threads come to work."""
_RETRY_S = 1.0
"""Until a session that another process indexes is looked at again, or a lost server."""
_LOOK_AROUND_S = 300.0
"""Until what other processes have left is looked for again."""
_REMEMBERED = 20_000
_BUNDLES = 0
"""Stands among sessions for the bundles of all."""
_BUNDLED_EVERY = 256
"""Sessions after which there may be something to bundle; the room that this frees is then used again."""


class Indexer:
    """One thread with one connection, which it makes when there is something to index."""

    def __init__(self, conninfo: str, extract: Extract) -> None:
        self._conninfo = conninfo
        self._extract = extract
        self._changed = threading.Condition()
        self._ending = False
        self._waiting: dict[int, float] = {}
        """Sessions to look at, with the time from when on."""
        self._lacking: dict[int, float] = {}
        """How much of a session is not indexed, about, counted as messages."""
        self._behind = 0.0
        self._since_bundles = 0
        self._written_at = 0.0
        self._look_around_at = 0.0
        self._working = True
        self._tables: IndexTables | None = None
        self._thread = threading.Thread(target=self._run, name="store-indexer", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def hold(self) -> None:
        """Say that a commit has begun, which is let pass until `note` tells what it has written."""
        self._written_at = inf

    def note(self, written: dict[int, float]) -> None:
        """Say how much was written to which sessions, counted as messages."""
        with self._changed:
            known = len(self._waiting)
            self._written_at = time.monotonic()
            if len(self._lacking) > _REMEMBERED:
                self._lacking.clear()
            for uid, amount in written.items():
                lacking = self._lacking.get(uid)
                self._lacking[uid] = amount if lacking is None else lacking + amount
                if lacking is None or self._lacking[uid] >= jobs.CHUNK:
                    self._waiting.setdefault(uid, 0.0)
                    self._behind += amount
                    self._working = True
            if len(self._waiting) > known:
                self._changed.notify()

    @property
    def has_work(self) -> bool:
        """Whether there is something to index, as far as known."""
        return self._working

    def end(self) -> None:
        """End the thread after its step of the moment; blocks until then."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending:
            try:
                self._look_around()
                uid = self._next()
                if uid is not None:
                    self._index(self._connected(), uid)
            except Exception as error:
                _report(error)
                self._disconnect()
                with self._changed:
                    self._changed.wait_for(lambda: self._ending, _RETRY_S)
        self._disconnect()

    def _look_around(self) -> None:
        now = time.monotonic()
        if now >= self._look_around_at:
            grown = self._connected().grown(jobs.CHUNK, jobs.FEW, jobs.rested_before_ms())
            self._look_around_at = now + _LOOK_AROUND_S
            with self._changed:
                for uid in grown:
                    self._waiting.setdefault(uid, 0.0)
                self._waiting[_BUNDLES] = 0.0

    def _next(self) -> int | None:
        """A session to look at, once writes have paused; `None` where it is time to look around."""
        uid = None
        now = time.monotonic()
        with self._changed:
            while not self._ending:
                now = time.monotonic()
                uid = self._due(now)
                if uid is None:
                    wait_s = min(self._waiting.values(), default=self._look_around_at) - now
                else:
                    wait_s = min(self._pause_left(), _PAUSE_S)
                if wait_s <= 0:
                    break
                self._working = bool(self._waiting)
                self._changed.wait(wait_s)
            if self._ending or uid is None:
                return None
            self._working = True
            self._lacking.pop(uid, None)
            del self._waiting[uid]
            self._since_bundles = 0 if uid == _BUNDLES else self._since_bundles + 1
            if not self._waiting:
                self._behind = 0.0
            elif uid == _BUNDLES and self._due(now) is not None:
                self._waiting[_BUNDLES] = 0.0
            return uid

    def _due(self, now: float) -> int | None:
        """What is to be looked at now; bundles when nothing else is, or when many sessions have been."""
        bundles = self._waiting.get(_BUNDLES, now + 1) <= now
        if bundles and self._since_bundles >= _BUNDLED_EVERY:
            return _BUNDLES
        session = next((uid for uid, at in self._waiting.items() if at <= now and uid != _BUNDLES), None)
        return _BUNDLES if session is None and bundles else session

    def _index(self, tables: IndexTables, uid: int) -> None:
        try:
            if not tables.claim(uid):
                self._again(uid, _RETRY_S)
                return
            try:
                self._carry_out(_work(tables, self._extract, uid))
            finally:
                if not tables.connection.closed:
                    tables.release(uid)
        except BaseException:
            self._again(uid, 0.0)
            raise

    def _again(self, uid: int, pause_s: float) -> None:
        with self._changed:
            self._waiting.setdefault(uid, time.monotonic() + pause_s)

    def _carry_out(self, steps: Iterator[None]) -> None:
        breath = time.monotonic() + _STEP_S
        for _ in steps:
            if time.monotonic() < breath:
                continue
            pause_s = _BREATH_S
            while pause_s > 0:
                with self._changed:
                    self._changed.wait_for(lambda: self._ending, pause_s)
                if self._ending:
                    return
                pause_s = min(self._pause_left(), _PAUSE_S)
            breath = time.monotonic() + _STEP_S

    def _pause_left(self) -> float:
        if self._behind > _MOST_BEHIND:
            return 0.0
        return self._written_at + _PAUSE_S - time.monotonic()

    def _connected(self) -> IndexTables:
        if self._tables is None:
            self._tables = IndexTables(connect(self._conninfo))
        return self._tables

    def _disconnect(self) -> None:
        tables, self._tables = self._tables, None
        if tables is not None:
            tables.connection.close()


def _work(tables: IndexTables, extract: Extract, uid: int) -> Iterator[None]:
    """Everything that is to do for one session, or for bundles."""
    work = jobs.IndexJobs(tables, extract)
    work.take_over(tables.leftovers(uid))
    if uid == _BUNDLES:
        for _ in bundle(tables, work.take_over):
            yield from _cleaned(tables, work)
            yield
        yield from _cleaned(tables, work)
        return
    while True:
        yield from _cleaned(tables, work)
        if not ((yield from work.merge(uid)) or (yield from work.build(uid))):
            return


def _cleaned(tables: IndexTables, work: jobs.IndexJobs) -> Iterator[None]:
    """Erase what is no longer of use, and let its room be used again."""
    yield from work.clean()
    tables.clear_up()


def _report(error: Exception) -> None:
    import logging

    log = logging.getLogger(__name__)
    if isinstance(error, psycopg.OperationalError):
        log.warning("indexing waits for the PostgreSQL server: %s", type(error).__name__)
    else:
        log.error("indexing failed; searches look at the messages", exc_info=error)
