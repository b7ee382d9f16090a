"""Searches of one session, in small steps between which a store may do something else."""

from collections.abc import Generator

from sidecar.store.errors import SessionMissing
from sidecar.store.indexing.covering import Gaps, SearchReads, newest_of_gap, parts, unchanged
from sidecar.store.indexing.facets import narrowing
from sidecar.store.indexing.paging import Page, decode_page, encode_page
from sidecar.store.indexing.questions import question
from sidecar.store.indexing.ranking import Ranking
from sidecar.store.indexing.scanning import Scan, Wanted
from sidecar.store.indexing.shelf import View
from sidecar.store.records import SessionRecord
from sidecar.store.search import SearchError, SearchHit, SearchQuery, SearchResult
from sidecar.store.stored import SessionRef

MOST_RANKED = 1_000
"""Hits of one search for words at most, over all pages."""

_NOTHING = SearchResult([], True)
Steps = Generator[None, None, SearchResult]
"""A search; behind every `yield` the store may have changed."""


def search_steps(reads: SearchReads, gaps: Gaps, ref: SessionRef, query: SearchQuery) -> Steps:
    """The search that answers a query.

    Raises:
        SearchError: the query cannot be answered.
        SessionMissing: the session is another agent's.
        SessionChanged: begin anew.
    """
    record = reads.session(ref)
    if record is None:
        return _NOTHING
    if query.agent_id is not None and record.agent_id not in (None, query.agent_id):
        raise SessionMissing(f"the session {ref.session_id!r} belongs to another agent")
    page = None if query.cursor is None else decode_page(query.cursor)
    if page is not None and page.revision != record.revision:
        raise SearchError("the session was rewritten since the cursor was made; leave it out to begin anew")
    newest = record.message_count if page is None else page.last
    last = newest if query.last is None else min(query.last, newest)
    first = max(query.first, 1)
    if query.limit <= 0 or first > last:
        return _NOTHING
    if query.kind == "words":
        return (yield from _ranked(reads, gaps, record, query, first, last, page))
    return (yield from _in_order(reads, gaps, record, query, first, last, page))


def _ranked(
    reads: SearchReads,
    gaps: Gaps,
    record: SessionRecord,
    query: SearchQuery,
    first: int,
    last: int,
    page: Page | None,
) -> Steps:
    asked = question(query.text)
    if not asked.required and not asked.helpful:
        return _NOTHING
    views, complete = yield from _views(reads, gaps, record, first, last)
    before = 0 if page is None else page.reached
    until = min(before + query.limit, MOST_RANKED)
    ranked = Ranking(views, asked, narrowing(query)).best(until)
    cursor = None
    if ranked.more and len(ranked.hits) == until < MOST_RANKED:
        cursor = encode_page(Page(record.revision, last, until))
    cut = ranked.more and cursor is None
    hits = [
        SearchHit(views[number].shelf.first + ordinal, score)
        for number, ordinal, score in ranked.hits[before:]
    ]
    return SearchResult(hits, complete and ranked.complete and not cut, cursor)


def _in_order(
    reads: SearchReads,
    gaps: Gaps,
    record: SessionRecord,
    query: SearchQuery,
    first: int,
    last: int,
    page: Page | None,
) -> Steps:
    wanted = Wanted(query)
    newest = last
    if page is not None and query.newest_first:
        last = page.reached - 1
    elif page is not None:
        first = page.reached + 1
    found = yield from Scan(reads, gaps, record, wanted, first, last).steps()
    hits = [SearchHit(position, 1.0) for position in found.positions]
    if found.reached is None:
        return SearchResult(hits, True)
    cursor = encode_page(Page(record.revision, newest, found.reached))
    return SearchResult(hits, wanted.hits_left <= 0, cursor)


def _views(
    reads: SearchReads, gaps: Gaps, record: SessionRecord, first: int, last: int
) -> Generator[None, None, tuple[list[View], bool]]:
    """What is on shelves, with the gaps gathered; whether that is all."""
    while True:
        views: list[View] = []
        complete = True
        for part in parts(reads, record, first, last):
            if part.shelf is not None:
                views.append(part.view(part.shelf))
                continue
            bounded = newest_of_gap(reads, part)
            complete = complete and bounded.first == part.first
            gathered = gaps.gathered(bounded)
            if gathered is None:
                gaps.gather(reads, bounded)
                break
            views.append(bounded.view(gathered))
        else:
            return views, complete
        yield
        record = unchanged(reads, record)
