"""Searches of all sessions that an agent may read, in small steps."""

from collections.abc import Collection, Generator
from typing import NamedTuple

from sidecar.store.contract import SessionRef
from sidecar.store.indexing.covering import (
    MOST_GATHERED,
    Gaps,
    Part,
    SearchReads,
    SessionChanged,
    newest_of_gap,
    parts_of_owner,
    parts_on,
)
from sidecar.store.indexing.facets import narrowing
from sidecar.store.indexing.paging import SessionsPage, decode_sessions_page, encode_page
from sidecar.store.indexing.questions import question
from sidecar.store.indexing.ranking import Ranking
from sidecar.store.indexing.readable import Stretch, stretches
from sidecar.store.indexing.scanning import Scan, Scanned, Wanted
from sidecar.store.indexing.searching import MOST_RANKED
from sidecar.store.indexing.shelf import Shelf, View
from sidecar.store.search import SearchError, SearchQuery, SessionsHit, SessionsResult

_NOTHING = SessionsResult([], True)
Steps = Generator[None, None, SessionsResult]
"""A search; behind every `yield` the store may have changed."""


class _Scope(NamedTuple):
    """Which messages are searched."""

    namespace: str
    agent_id: str | None
    without: Collection[SessionRef]

    def stretches(self, reads: SearchReads) -> list[Stretch]:
        """The messages, as they are now."""
        return stretches(reads, self.namespace, self.agent_id, self.without)


class _Known(NamedTuple):
    """All shelves of a namespace, by uid of the owner."""

    namespace: str
    shelves: dict[int, list[Shelf]]


def sessions_steps(
    reads: SearchReads, gaps: Gaps, namespace: str, query: SearchQuery, without: Collection[SessionRef]
) -> Steps:
    """The search that answers a query in all sessions of a namespace.

    Raises:
        SearchError: the query cannot be answered.
    """
    if query.first > 1 or query.last is not None:
        raise SearchError("positions are those of one session; name it, or leave them out")
    scope = _Scope(namespace, query.agent_id, without)
    if query.kind == "words":
        if query.cursor is not None:
            raise SearchError("a search for words in all sessions has no cursor; ask for more with `limit`")
        return (yield from _ranked(reads, gaps, scope, query))
    return (yield from _in_order(reads, gaps, scope, query))


def _ranked(reads: SearchReads, gaps: Gaps, scope: _Scope, query: SearchQuery) -> Steps:
    asked = question(query.text)
    if query.limit <= 0 or not (asked.required or asked.helpful):
        return _NOTHING
    shown: list[tuple[Stretch, View]] = []
    while True:
        shown, lacking, complete = _covered(reads, gaps, scope)
        if not lacking:
            break
        for part in lacking:
            while _is_current(reads, part) and gaps.gathered(part) is None and gaps.gather(reads, part):
                yield
    wanted = min(query.limit, MOST_RANKED)
    ranked = Ranking([view for _, view in shown], asked, narrowing(query)).best(wanted)
    hits = [SessionsHit(shown[number][0].told.ref, place, score) for number, place, score in ranked.hits]
    cut = ranked.more and query.limit > MOST_RANKED
    return SessionsResult(hits, complete and ranked.complete and not cut)


def _covered(
    reads: SearchReads, gaps: Gaps, scope: _Scope
) -> tuple[list[tuple[Stretch, View]], list[Part], bool]:
    """What can be searched at once, older sessions first; what must be gathered; whether that is all."""
    shown: list[tuple[Stretch, View]] = []
    lacking: list[Part] = []
    left = MOST_GATHERED
    complete = True
    known = _Known(scope.namespace, reads.shelves_in(scope.namespace))
    for stretch in reversed(scope.stretches(reads)):
        for part in reversed(_parts(reads, known, stretch)):
            if part.shelf is not None:
                shown.append((stretch, part.view(part.shelf)))
                continue
            if left <= 0 and reads.indexes:
                complete = False
                continue
            bounded = newest_of_gap(reads, part, left)
            left -= bounded.last - bounded.start + 1
            complete = complete and bounded.first == part.first
            gathered = gaps.gathered(bounded)
            if gathered is None:
                lacking.append(bounded)
            else:
                shown.append((stretch, bounded.view(gathered)))
    shown.reverse()
    return shown, lacking, complete


def _parts(reads: SearchReads, known: _Known, stretch: Stretch) -> list[Part]:
    owner, first, last = stretch.owner, stretch.first, stretch.last
    if owner.ref.namespace != known.namespace:
        return parts_of_owner(reads, owner, first, last)
    return parts_on(known.shelves.get(owner.uid, ()), owner, first, last)


def _is_current(reads: SearchReads, part: Part) -> bool:
    now = reads.session(part.owner.ref)
    return now is not None and now.uid == part.owner.uid and now.revision == part.owner.revision


def _in_order(reads: SearchReads, gaps: Gaps, scope: _Scope, query: SearchQuery) -> Steps:
    wanted = Wanted(query)
    page = None if query.cursor is None else decode_sessions_page(query.cursor)
    if query.limit <= 0:
        return _NOTHING
    hits: list[SessionsHit] = []
    waiting = _waiting(reads, scope, wanted, page)
    newest = page.newest if page else max((stretch.owner.uid for stretch in waiting), default=0)
    while waiting:
        stretch = waiting[-1]
        try:
            found = yield from Scan(reads, gaps, stretch.told, wanted, stretch.first, stretch.last).steps()
        except SessionChanged:
            wanted.hits_left = query.limit - len(hits)
            waiting = _waiting(reads, scope, wanted, page)
            continue
        waiting.pop()
        hits += [SessionsHit(stretch.told.ref, position, 1.0) for position in found.positions]
        page = _page(stretch, newest, found)
        if wanted.satisfied and (waiting or page.last):
            return SessionsResult(hits, wanted.hits_left <= 0, encode_page(page))
        yield
    return SessionsResult(hits, True)


def _waiting(reads: SearchReads, scope: _Scope, wanted: Wanted, page: SessionsPage | None) -> list[Stretch]:
    """What is still to be looked at, that which comes next at the end."""
    found = scope.stretches(reads)
    if page is not None:
        found = [stretch for stretch in found if _is_behind(stretch.owner.uid, page, wanted)]
    if not wanted.backwards:
        found.reverse()
    if page is not None and page.last and found and found[-1].owner.uid == page.uid:
        stretch = found[-1]
        if stretch.told.revision != page.revision:
            raise SearchError("a session was rewritten since the cursor was made; leave it out to begin anew")
        first, last = (1, page.reached - 1) if wanted.backwards else (page.reached + 1, page.last)
        found[-1] = stretch._replace(first=max(stretch.first, first), last=min(stretch.last, last))
    return found


def _is_behind(uid: int, page: SessionsPage, wanted: Wanted) -> bool:
    if uid == page.uid:
        return page.last > 0
    return uid < page.uid if wanted.backwards else page.uid < uid <= page.newest


def _page(stretch: Stretch, newest: int, found: Scanned) -> SessionsPage:
    if found.reached is None:
        return SessionsPage(stretch.owner.uid, newest, 0, 0, 0)
    return SessionsPage(stretch.owner.uid, newest, stretch.told.revision, stretch.last, found.reached)
