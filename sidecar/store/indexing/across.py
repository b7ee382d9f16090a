"""Searches of all sessions that an agent may read, in small steps."""

from bisect import bisect_left
from collections.abc import Collection, Generator

from sidecar.store.indexing.catalogue import Catalogue, Catalogues, Scope, Shown
from sidecar.store.indexing.covering import (
    MOST_GATHERED,
    Gaps,
    Part,
    SearchReads,
    SessionChanged,
    newest_of_gap,
)
from sidecar.store.indexing.facets import narrowing
from sidecar.store.indexing.paging import SessionsPage, decode_sessions_page, encode_page
from sidecar.store.indexing.pieces import candidates
from sidecar.store.indexing.questions import question
from sidecar.store.indexing.ranking import Ranking
from sidecar.store.indexing.readable import Stretch
from sidecar.store.indexing.scanning import Scan, Scanned, Wanted
from sidecar.store.indexing.searching import MOST_RANKED
from sidecar.store.indexing.shelf import Shelf
from sidecar.store.search import SearchError, SearchQuery, SessionsHit, SessionsResult
from sidecar.store.stored import SessionRef

_NOTHING = SessionsResult([], True)
_FEW = 500
"""Messages of a bundle that are worth a look whose sessions are worked out at once."""
Steps = Generator[None, None, SessionsResult]
"""A search; behind every `yield` the store may have changed."""


def sessions_steps(
    reads: SearchReads, gaps: Gaps, namespace: str, query: SearchQuery, without: Collection[SessionRef]
) -> Steps:
    """The search that answers a query in all sessions of a namespace.

    Raises:
        SearchError: the query cannot be answered.
    """
    if query.first > 1 or query.last is not None:
        raise SearchError("positions are those of one session; name it, or leave them out")
    scope = Scope(namespace, query.agent_id, without)
    if query.kind == "words":
        if query.cursor is not None:
            raise SearchError("a search for words in all sessions has no cursor; ask for more with `limit`")
        return (yield from _ranked(reads, gaps, scope, query))
    return (yield from _in_order(reads, gaps, scope, query))


def _ranked(reads: SearchReads, gaps: Gaps, scope: Scope, query: SearchQuery) -> Steps:
    asked = question(query.text)
    if query.limit <= 0 or not (asked.required or asked.helpful):
        return _NOTHING
    while True:
        shown, lacking, complete = _covered(reads, gaps, scope)
        if not lacking:
            break
        for part in lacking:
            while _is_current(reads, part) and gaps.gathered(part) is None and gaps.gather(reads, part):
                yield
    wanted = min(query.limit, MOST_RANKED)
    ranked = Ranking([each.view for each in shown], asked, narrowing(query)).best(wanted)
    hits = [SessionsHit(*shown[number].place(ordinal), score) for number, ordinal, score in ranked.hits]
    cut = ranked.more and query.limit > MOST_RANKED
    return SessionsResult(hits, complete and ranked.complete and not cut)


def _covered(reads: SearchReads, gaps: Gaps, scope: Scope) -> tuple[list[Shown], list[Part], bool]:
    """What can be searched at once, older sessions first; what must be gathered; whether that is all."""
    catalogue, left_out = _catalogue(reads, gaps, scope)
    shown: list[Shown] = []
    lacking: list[Part] = []
    left = MOST_GATHERED
    complete = True
    for uid in sorted(catalogue.loose.keys() - left_out, reverse=True):
        for stretch, part, segment in reversed(catalogue.loose[uid]):
            if segment is not None:
                shown.append(_shown(stretch, part, reads.shelf(segment)))
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
                shown.append(_shown(stretch, bounded, gathered))
    shown.reverse()
    shown += catalogue.shown_bundles(reads, left_out)
    shown.sort(key=lambda each: each.uid)
    return shown, lacking, complete


def _shown(stretch: Stretch, part: Part, shelf: Shelf) -> Shown:
    ref, first = stretch.told.ref, shelf.first

    def place(ordinal: int) -> tuple[SessionRef, int]:
        return ref, first + ordinal

    return Shown(part.view(shelf), part.owner.uid, place)


def _catalogue(reads: SearchReads, gaps: Gaps, scope: Scope) -> tuple[Catalogue, set[int]]:
    catalogues = gaps.catalogues = gaps.catalogues or Catalogues()
    return catalogues.catalogue(reads, scope)


def _is_current(reads: SearchReads, part: Part) -> bool:
    now = reads.session(part.owner.ref)
    return now is not None and now.uid == part.owner.uid and now.revision == part.owner.revision


def _in_order(reads: SearchReads, gaps: Gaps, scope: Scope, query: SearchQuery) -> Steps:
    wanted = Wanted(query)
    page = None if query.cursor is None else decode_sessions_page(query.cursor)
    if query.limit <= 0:
        return _NOTHING
    hits: list[SessionsHit] = []
    waiting, sieve = _waiting(reads, gaps, scope, wanted, page)
    newest = page.newest if page else max((stretch.owner.uid for stretch in waiting), default=0)
    while waiting:
        stretch = waiting[-1]
        worth_it = sieve.candidates(reads, stretch)
        if worth_it == []:
            sieve.drop_more(waiting)
            yield
            continue
        try:
            scan = Scan(reads, gaps, stretch.told, wanted, stretch.first, stretch.last, worth_it)
            found = yield from scan.steps()
        except SessionChanged:
            wanted.hits_left = query.limit - len(hits)
            waiting, sieve = _waiting(reads, gaps, scope, wanted, page)
            continue
        waiting.pop()
        hits += [SessionsHit(stretch.told.ref, position, 1.0) for position in found.positions]
        page = _page(stretch, newest, found)
        if wanted.satisfied and (waiting or page.last):
            return SessionsResult(hits, wanted.hits_left <= 0, encode_page(page))
        yield
    return SessionsResult(hits, True)


def _waiting(
    reads: SearchReads, gaps: Gaps, scope: Scope, wanted: Wanted, page: SessionsPage | None
) -> tuple[list[Stretch], "_Sieve"]:
    """What is still to be looked at, that which comes next at the end; and what of it need not be."""
    catalogue, left_out = _catalogue(reads, gaps, scope)
    found = [catalogue.stretches[uid] for uid in sorted(catalogue.stretches.keys() - left_out)]
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
    return found, _Sieve(catalogue, wanted)


class _Sieve:
    """Tells of sessions in bundles where something may be found, by one look at each bundle."""

    def __init__(self, catalogue: Catalogue, wanted: Wanted) -> None:
        self._catalogue = catalogue
        self._wanted = wanted
        self._candidates: dict[int, list[int] | None] = {}
        """The ordinals in a bundle that are worth a look, `None` where that cannot be told."""
        self._owners: dict[int | None, set[int]] = {}
        """By bundle the uids of the sessions with something that is, if these are few."""

    def drop_more(self, waiting: list[Stretch]) -> None:
        """Take what is surely nothing off the end, as far as that is known already; at least one."""
        waiting.pop()
        within, owners = self._catalogue.within, self._owners
        while waiting:
            uid = waiting[-1].owner.uid
            known = owners.get(within.get(uid))
            if known is None or uid in known:
                break
            waiting.pop()

    def candidates(self, reads: SearchReads, stretch: Stretch) -> list[int] | None:
        """The positions in a session that are worth a look, in order; `None` where that cannot be told."""
        uid = stretch.owner.uid
        held = self._catalogue.held.get(uid)
        if held is None or uid in self._catalogue.loose:
            return None
        positions: list[int] = []
        for segment in held:
            if segment.bundle not in self._candidates:
                self._candidates[segment.bundle] = looked = self._look(reads, segment.bundle)
                if looked is not None and len(looked) <= _FEW:
                    self._owners[segment.bundle] = self._catalogue.owners(segment.bundle, looked)
            found = self._candidates[segment.bundle]
            if found is None:
                return None
            low, high = bisect_left(found, segment.start), bisect_left(found, segment.start + segment.size)
            positions += [ordinal - segment.start + segment.first for ordinal in found[low:high]]
        return sorted(position for position in positions if stretch.first <= position <= stretch.last)

    def _look(self, reads: SearchReads, bundle: int) -> list[int] | None:
        shown = self._catalogue.shown_bundle(reads, bundle)
        if shown is None:
            return None
        found = candidates(shown.view, self._wanted.matcher.pieces)
        admitted = shown.view.admitted(self._wanted.narrowing)
        if found is None:
            return None if admitted is None else sorted(admitted)
        return sorted(found if admitted is None else found & admitted)


def _is_behind(uid: int, page: SessionsPage, wanted: Wanted) -> bool:
    if uid == page.uid:
        return page.last > 0
    return uid < page.uid if wanted.backwards else page.uid < uid <= page.newest


def _page(stretch: Stretch, newest: int, found: Scanned) -> SessionsPage:
    if found.reached is None:
        return SessionsPage(stretch.owner.uid, newest, 0, 0, 0)
    return SessionsPage(stretch.owner.uid, newest, stretch.told.revision, stretch.last, found.reached)
