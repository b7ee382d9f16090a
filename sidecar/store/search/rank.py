"""The best messages for a question.

The database tells which messages have a word: the newest, and only so many. How good they are is worked out
here. Rare words decide which messages are read, and BM25 over those decides in which order they come.
"""

from collections import OrderedDict
from collections.abc import Collection, Generator
from math import log
from threading import Lock
from typing import NamedTuple

from sidecar.store.records import MessageRow, SessionRecord
from sidecar.store.search import Extract, Searchable, SearchQuery
from sidecar.store.search.query import Groups, narrowing
from sidecar.store.search.scope import Budget, Scope, SearchReads, place_of, position_of, uid_of
from sidecar.store.search.terms import Question, document_terms, question

MOST_RANKED = 1_000
"""Hits of one search at most."""
_K1 = 1.2
_B = 0.75
_MOST_PLACES = 1_000
"""Messages with one word that are considered, the newest; fewer where there are many words."""
_FEW_PLACES = 400
_FEW_TERMS = 3
_LEAST_READ = 80
"""Messages that are read at least, the most promising."""
_READ_A_HIT = 4
"""Messages that are read for every hit that is wanted. With fewer, long conversations lose passages."""
_MOST_KNOWN = 100_000
"""Terms of messages that are kept for the next question."""
_MOST_WAITING = 20_000
"""Messages that are not indexed yet and read for it, the newest."""
WAITING_FOR_ANSWER = 500
"""The same where an answer waits for the search."""
_BATCH = 50
_SAMPLED = 500
"""Messages by which the size of one is judged."""


class Ranked(NamedTuple):
    """The best messages, and whether there are surely no better ones."""

    hits: list[tuple[int, float]]
    """Places with their scores, best first, newer ones first among equals."""
    complete: bool
    more: bool
    """Whether worse ones follow."""


class _Postings(NamedTuple):
    """The messages with a term."""

    places: list[int]
    cut: bool
    """Whether there are more, older ones."""


class _Content(NamedTuple):
    """What a message is ranked by."""

    row: MessageRow
    """Without its body."""
    searchable: Searchable
    """Without its text."""
    size: int
    counts: dict[str, int]
    length: int
    """Terms."""


class Contents:
    """The terms of messages, kept for the next question as long as there are not too many."""

    def __init__(self, extract: Extract) -> None:
        self.extract = extract
        self._known: OrderedDict[int, _Content] = OrderedDict()
        """By row id, which no other message ever has."""
        self._terms = 0
        self._lock = Lock()

    def known(self, row_id: int) -> _Content | None:
        """What is known of a message."""
        with self._lock:
            found = self._known.get(row_id)
            if found is not None:
                self._known.move_to_end(row_id)
            return found

    def read(self, owner: SessionRecord, row: MessageRow) -> _Content:
        """What a message says."""
        searchable = self.extract(owner, row.body)
        terms = document_terms(searchable.text)
        row, size = row._replace(body=b""), len(row.body)
        content = _Content(row, searchable._replace(text=""), size, terms.counts, terms.length)
        with self._lock:
            if row.row_id not in self._known:
                self._known[row.row_id] = content
                self._terms += len(terms.counts)
            while self._terms > _MOST_KNOWN and len(self._known) > 1:
                self._terms -= len(self._known.popitem(last=False)[1].counts)
        return content


Steps = Generator[None, None, Ranked]
"""A ranking under way; it may be given up at every `yield`."""


def ranked(
    reads: SearchReads, scope: Scope, query: SearchQuery, contents: Contents, budget: Budget, count: int
) -> Steps:
    """The best `count` messages for the words of a query."""
    asked = question(query.text)
    if not asked.required and not asked.helpful:
        return Ranked([], True, False)
    return (yield from _Ranking(reads, scope, asked, query, contents, budget).best(count))


class _Ranking:
    def __init__(
        self,
        reads: SearchReads,
        scope: Scope,
        asked: Question,
        query: SearchQuery,
        contents: Contents,
        budget: Budget,
    ) -> None:
        self._reads = reads
        self._scope = scope
        self._asked = asked
        self._narrowed = narrowing(query)
        self._most_waiting = WAITING_FOR_ANSWER if query.for_answer else _MOST_WAITING
        self._contents = contents
        self._budget = budget
        self._ranges = scope.ranges()
        self._order = {uid_of(low): number for number, (low, _) in enumerate(self._ranges)}
        self._read: dict[int, _Content | None] = {}
        """What was read; `None` for a message that may not be found."""
        self._terms = [*asked.required, *asked.helpful]
        self._complete = True

    def best(self, count: int) -> Steps:
        """See `ranked`."""
        terms = self._terms
        most_read = max(_LEAST_READ, _READ_A_HIT * count)
        most = _MOST_PLACES if len(terms) <= _FEW_TERMS else _FEW_PLACES
        found = {term: self._newest([[term]], most) for term in terms}
        yield from self._read_waiting(found)
        found = {term: postings for term, postings in found.items() if postings.places}
        worth = {term: self._worth(postings) for term, postings in found.items()}
        required = [term for term in self._asked.required if term in found]
        wanted = len(required) if 1 < len(required) == len(self._asked.required) else -1
        bonus = sum(worth.values()) * (_K1 + 1)
        values: dict[int, float] = {}
        having: dict[int, int] = {}
        for term, postings in found.items():
            counts = term in self._asked.required
            for place in postings.places:
                values[place] = values.get(place, 0.0) + worth[term]
                having[place] = having.get(place, 0) + counts
        if wanted > 0 and any(found[term].cut for term in required):
            known = (len(found[term].places) for term in required if not found[term].cut)
            rarest = min(known, default=MOST_RANKED)
            if rarest <= 2 * most_read:
                # All messages with that word are known, and read: which have all words is seen there.
                most_read = max(most_read, rarest)
            else:
                for place in self._newest([[term] for term in required], most_read).places:
                    values[place] = sum(worth[term] for term in required)
                    having[place] = wanted
        for place, has in having.items():
            if has == wanted:
                values[place] += bonus
        promising = sorted(values, key=lambda place: (values[place], *self._newer(place)), reverse=True)
        chosen = promising[:most_read]
        yield from self._read_places(chosen)
        scores = self._scores(chosen, worth, set(required), wanted, bonus)
        hits = sorted(scores.items(), key=lambda hit: (hit[1], *self._newer(hit[0])), reverse=True)
        least = min(scores.values(), default=0.0)
        unread = [place for place in chosen if place not in self._read] + promising[most_read:MOST_RANKED]
        hits += [(place, min(least, values[place])) for place in unread]
        cut = {term for term, postings in found.items() if postings.cut}
        if cut and len(hits) >= count:
            unseen = sum(worth[term] for term in cut) * (_K1 + 1)
            unseen += bonus if wanted > 0 and cut.issuperset(required) else 0.0
            self._complete = self._complete and hits[count - 1][1] >= unseen
        elif cut:
            self._complete = False
        return Ranked(hits[:count], self._complete, len(hits) > count or bool(cut))

    def _newer(self, place: int) -> tuple[int, int]:
        """What rises with the age of messages that are as good."""
        return self._order.get(uid_of(place), 0), place

    def _newest(self, groups: Groups, most: int) -> _Postings:
        """The newest messages that may be found with one term of every group."""
        narrowed = [*groups, *self._narrowed.groups]
        places: list[int] = []
        for low, high in reversed(self._ranges):
            while low <= high:
                limit = most + 1 - len(places)
                some = self._reads.candidates(narrowed, (), low, high, limit, newest=True)
                places += self._admitted(some)
                if len(places) > most:
                    return _Postings(places[:most], True)
                if len(some) < limit:
                    break
                if self._budget.over():
                    return _Postings(places, True)
                high = self._before(some[-1])
        return _Postings(places, False)

    def _before(self, place: int) -> int:
        """Where to go on behind a place: what may not be found of a session is passed over."""
        return place - 1 if self._scope.stretch(place) is not None else place - position_of(place) - 1

    def _admitted(self, places: list[int]) -> list[int]:
        found = places
        if not self._scope.exact:
            found = [place for place in places if self._scope.stretch(place) is not None]
        if not self._narrowed.by_time or not found:
            return found
        stamps = self._reads.stamps_at(found)
        return [place for place in found if place in stamps and self._narrowed.at(stamps[place])]

    def _worth(self, postings: _Postings) -> float:
        """The inverse document frequency; of a frequent word it is judged by the newest messages with it."""
        having = len(postings.places)
        total = max(self._scope.total, having)
        if postings.cut and having:
            among = self._scope.count(postings.places[-1], postings.places[0])
            having = max(having, min(total, total * having // max(among, having)))
        return log(1 + (total - having + 0.5) / (having + 0.5))

    def _read_waiting(self, found: dict[str, _Postings]) -> Generator[None, None, None]:
        """Add the messages that are not indexed to those with their terms."""
        left = self._most_waiting
        for low, high in reversed(self._ranges):
            waiting = self._reads.not_indexed(low, high, left + 1)
            if len(waiting) > left:
                self._complete = False
                waiting = waiting[-left:] if left else []
            left -= len(waiting)
            waiting = [place for place in waiting if self._scope.stretch(place) is not None]
            for end in range(len(waiting), 0, -_BATCH):
                if self._budget.over():
                    self._complete = False
                    return
                some = waiting[max(0, end - _BATCH) : end]
                yield from self._read_places(some)
                for place in some:
                    content = self._read.get(place)
                    for term in () if content is None else content.counts:
                        found[term].places.insert(0, place)

    def _read_places(self, places: list[int]) -> Generator[None, None, None]:
        unread = [place for place in places if place not in self._read]
        for start in range(0, len(unread), _BATCH):
            some = unread[start : start + _BATCH]
            self._read.update(dict.fromkeys(some))
            for place, row_id in self._reads.row_ids_at(some).items():
                content = self._contents.known(row_id)
                if content is not None:
                    self._consider(place, content)
                    some.remove(place)
            rows = self._reads.rows_at(some)
            for number, row in enumerate(rows):
                if number and self._budget.over():
                    for late in rows[number:]:
                        del self._read[place_of(late.session, late.position)]
                    self._complete = False
                    return
                place = place_of(row.session, row.position)
                stretch = self._scope.stretch(place)
                if stretch is None:
                    continue
                self._consider(place, self._contents.read(stretch.owner, row))
            yield

    def _consider(self, place: int, content: _Content) -> None:
        if not self._narrowed.admits(content.row) or not self._narrowed.says(content.searchable):
            return
        found = {term: content.counts[term] for term in self._terms if term in content.counts}
        if found:
            self._read[place] = content._replace(counts=found)

    def _scores(
        self, places: list[int], worth: dict[str, float], required: set[str], wanted: int, bonus: float
    ) -> dict[int, float]:
        """BM25 of the messages that were read; those with all required terms come before the others."""
        contents = {place: content for place in places if (content := self._read.get(place)) is not None}
        average = self._average(contents.values())
        scores: dict[int, float] = {}
        for place, content in contents.items():
            norm = _K1 * (1 - _B + _B * content.length / average)
            score = sum(
                worth[term] * (_K1 + 1) * times / (times + norm)
                for term, times in content.counts.items()
                if term in worth
            )
            has_all = wanted > 0 and required.issubset(content.counts)
            scores[place] = score + bonus if has_all else score
        return scores

    def _average(self, contents: Collection[_Content]) -> float:
        """Terms of a message of those that are searched, judged by the sizes of the newest."""
        terms = sum(content.length for content in contents)
        size = sum(content.size for content in contents)
        if not self._ranges or not terms or not size:
            return 1.0
        mean = self._reads.mean_size(*self._ranges[-1], _SAMPLED)
        return max(1.0, mean * terms / size)
