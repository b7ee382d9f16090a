"""Searches of one session or of many, as the stores carry them out."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Generator, Hashable
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

from sidecar.store.errors import SessionMissing, StoreUnavailable
from sidecar.store.search import (
    Extract,
    SearchError,
    SearchHit,
    SearchQuery,
    SearchResult,
    SessionsHit,
    SessionsResult,
)
from sidecar.store.search.rank import MOST_RANKED, Contents, ranked
from sidecar.store.search.scan import Scan
from sidecar.store.search.scope import (
    Budget,
    OfAgent,
    OfSession,
    SearchReads,
    place_of,
    position_of,
    uid_of,
)
from sidecar.store.stored import SessionRef

_T = TypeVar("_T")

_NOTHING = SearchResult([], True)
Steps = Generator[None, None, SearchResult]
SessionsSteps = Generator[None, None, SessionsResult]
"""A search under way: it may be given up at every `yield`."""


class Page(NamedTuple):
    """What the page before looked at, and how far it came."""

    revision: int
    """Of the session; positions mean something else once it has changed."""
    last: int
    """The newest position that is searched."""
    reached: int
    """For words the number of hits so far, otherwise the position that was looked at last."""


class SessionsPage(NamedTuple):
    """The same of a search in many sessions, which goes through them by uid."""

    uid: int
    """The session that was looked at last."""
    newest: int
    """The newest session that is searched."""
    revision: int
    reached: int
    """The position that was looked at last."""


class Turn:
    """One search; any thread may carry it out."""

    def __init__(self, turns: "Turns", *, for_answer: bool) -> None:
        self.for_answer = for_answer
        self._turns = turns
        self._given_up = False

    def give_up(self) -> None:
        """Say that nobody waits for the answer."""
        self._given_up = True

    def carry_out(self, steps: Generator[None, None, _T]) -> _T:
        """The answer.

        Raises:
            StoreUnavailable: the store was closed meanwhile.
        """
        while not (self._given_up or self._turns.ended):
            try:
                next(steps)
            except StopIteration as done:
                return done.value
        raise StoreUnavailable("the store is closed")


class Turns:
    """Lets searches of one session or agent follow each other, so that they keep no others waiting."""

    def __init__(self, extract: Extract) -> None:
        self.contents = Contents(extract)
        self.ended = False
        self.running = 0
        self._locks: dict[Hashable, asyncio.Lock] = {}

    def end(self) -> None:
        """Give up all that are under way."""
        self.ended = True

    @asynccontextmanager
    async def of(self, searched: Hashable, *, for_answer: bool) -> AsyncGenerator[Turn]:
        """A turn for a search of this; searches for answers follow each other alone."""
        turn = Turn(self, for_answer=for_answer)
        self.running += 1
        try:
            async with self._locks.setdefault((searched, for_answer), asyncio.Lock()):
                yield turn
        finally:
            turn.give_up()
            self.running -= 1
            if not self.running:
                self._locks.clear()


def search_session(reads: SearchReads, ref: SessionRef, query: SearchQuery, contents: Contents) -> Steps:
    """The search that answers a query in one session.

    Raises:
        SearchError: the query cannot be answered.
        SessionMissing: the session is another agent's.
    """
    record = reads.session(ref)
    if record is None:
        return _NOTHING
    if query.agent_id is not None and record.agent_id not in (None, query.agent_id):
        raise SessionMissing(f"the session {ref.session_id!r} belongs to another agent")
    page = None if query.cursor is None else Page(*_numbers(query.cursor, "s", len(Page._fields)))
    if page is not None and page.revision != record.revision:
        raise SearchError("the session was rewritten since the cursor was made; leave it out to begin anew")
    newest = record.message_count if page is None else page.last
    last = newest if query.last is None else min(query.last, newest)
    first = max(query.first, 1)
    budget = Budget(query)
    if query.kind == "words":
        if query.limit <= 0 or first > last:
            return _NOTHING
        before = 0 if page is None else page.reached
        until = min(before + query.limit, MOST_RANKED)
        found = yield from ranked(
            reads, OfSession(reads, record, first, last), query, contents, budget, until
        )
        hits = [SearchHit(position_of(place), score) for place, score in found.hits[before:]]
        cursor = None
        if found.more and len(found.hits) == until < MOST_RANKED:
            cursor = _encoded("s", Page(record.revision, newest, until))
        cut = found.more and cursor is None
        return SearchResult(hits, found.complete and not cut, cursor)
    if page is not None:
        first, last = (first, page.reached - 1) if query.newest_first else (page.reached + 1, last)
    scan = Scan(reads, OfSession(reads, record, first, last), query, contents.extract, budget)
    if query.limit <= 0 or first > last:
        return _NOTHING
    yield from scan.steps()
    hits = [SearchHit(position_of(place), 1.0) for place in scan.found]
    if scan.reached is None:
        return SearchResult(hits, scan.complete)
    cursor = _encoded("s", Page(record.revision, newest, position_of(scan.reached)))
    return SearchResult(hits, scan.complete and scan.full, cursor)


def search_sessions(
    reads: SearchReads,
    namespace: str,
    query: SearchQuery,
    without: Collection[SessionRef],
    contents: Contents,
) -> SessionsSteps:
    """The search that answers a query in all sessions of a namespace.

    Raises:
        SearchError: the query cannot be answered.
    """
    if query.first > 1 or query.last is not None:
        raise SearchError("positions are those of one session; name it, or leave them out")
    if query.kind == "words" and query.cursor is not None:
        raise SearchError("a search for words in all sessions has no cursor; ask for more with `limit`")
    scope = OfAgent(reads, namespace, query.agent_id, without)
    budget = Budget(query)
    if query.kind == "words":
        if query.limit <= 0:
            return SessionsResult([], True)
        wanted = min(query.limit, MOST_RANKED)
        found = yield from ranked(reads, scope, query, contents, budget, wanted)
        return SessionsResult(
            [_hit(scope, place, score) for place, score in found.hits],
            found.complete and not (found.more and query.limit > MOST_RANKED),
        )
    page = None
    if query.cursor is not None:
        page = SessionsPage(*_numbers(query.cursor, "a", len(SessionsPage._fields)))
    newest = reads.newest_session() if page is None else page.newest
    low, high = 0, place_of(newest + 1, 0) - 1
    if page is not None:
        owner = reads.owner(page.uid)
        if owner is not None and owner.revision != page.revision:
            raise SearchError("a session was rewritten since the cursor was made; leave it out to begin anew")
        reached = place_of(page.uid, page.reached)
        low, high = (low, reached - 1) if query.newest_first else (reached + 1, high)
    scope.clip(low, high)
    scan = Scan(reads, scope, query, contents.extract, budget)
    if query.limit <= 0:
        return SessionsResult([], True)
    yield from scan.steps()
    hits = [_hit(scope, place, 1.0) for place in scan.found]
    if scan.reached is None:
        return SessionsResult(hits, scan.complete)
    uid, position = uid_of(scan.reached), position_of(scan.reached)
    owner = reads.owner(uid)
    revision = 0 if owner is None else owner.revision
    cursor = _encoded("a", SessionsPage(uid, newest, revision, position))
    return SessionsResult(hits, scan.complete and scan.full, cursor)


def _hit(scope: OfAgent, place: int, score: float) -> SessionsHit:
    stretch = scope.stretch(place)
    assert stretch is not None
    return SessionsHit(stretch.told.ref, position_of(place), score)


def _encoded(kind: str, page: Page | SessionsPage) -> str:
    """The cursor for what comes behind."""
    return kind + ".".join(map(str, page))


def _numbers(cursor: str, kind: str, count: int) -> list[int]:
    parts = cursor[1:].split(".")
    known = cursor[:1] == kind and len(parts) == count
    if not known or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        raise SearchError(f"{cursor[:60]!r} is no cursor of this search; leave it out to begin anew")
    return list(map(int, parts))
