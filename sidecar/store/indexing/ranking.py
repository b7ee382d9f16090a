"""The best messages for a question, by BM25, with bounded work for words that are everywhere."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, heappushpop, nlargest
from itertools import islice, repeat
from math import inf, log
from typing import NamedTuple

from sidecar.store.indexing.facets import Narrowing
from sidecar.store.indexing.questions import Question
from sidecar.store.indexing.segments import expect
from sidecar.store.indexing.shelf import LENGTHS, PlaceFinder, Places, View

_K1 = 1.2
_B = 0.75
_MOST_PLACES = 3_000
"""Occurrences of rare terms that are all ranked."""
_MOST_COMPLETED = 400
"""Messages with rare terms that are ranked by common ones too, the most promising first."""
_NEWEST = 300
"""Of matches for common terms alone, only about so many are ranked."""
_MOST_LOOKED_AT = 60_000
"""Occurrences that are looked at for messages with all common terms."""

_AT_ONCE = 1_000
"""Of the rarest of them, looked at in one go."""
_DENSE = 10
"""Times as many occurrences of a term from which messages are sooner looked at one by one."""

_FEW = 100
"""Messages that are always looked at one by one."""

_TRIFLE = 1e-9
"""More than what sums of the same numbers differ by."""

_ORDINAL = (1 << 32) - 1
"""A message is meant by a number: that of its view, and in the lower 32 bits its ordinal."""


class _Term:
    """A term, with the places where it occurs as far as they are asked for."""

    def __init__(self, views: Sequence[View], text: str, total: int, *, required: bool) -> None:
        self.frequency = sum(view.frequency(text) for view in views)
        """Messages that have it."""
        self.most = log(1 + (total - self.frequency + 0.5) / (self.frequency + 0.5)) * (_K1 + 1)
        """No message gets more for this term."""
        self.required = required
        self._views = views
        self._text = text
        self._places: dict[int, Places] = {}
        self._finders: dict[int, PlaceFinder] = {}

    def places(self, number: int) -> Places:
        """Where it occurs in the view with this number."""
        found = self._places.get(number)
        if found is None:
            found = self._places[number] = self._views[number].places(self._text)
        return found

    def finder(self, number: int) -> PlaceFinder:
        """The same, for a look at a few messages."""
        found = self._finders.get(number)
        if found is None:
            found = self._finders[number] = self._views[number].finder(self._text)
        return found

    def times(self, message: int) -> int:
        """How often it is in a message."""
        return self.finder(message >> 32).times(message & _ORDINAL)


class _Scores(NamedTuple):
    """What messages get for some terms."""

    values: dict[int, float]
    having: dict[int, int]
    """How many required terms they have, where that matters."""


class Ranked(NamedTuple):
    """The best messages, and whether there are surely no better ones."""

    hits: list[tuple[int, int, float]]
    """The number of the view, the ordinal there, the score."""
    complete: bool
    more: bool
    """Whether worse ones follow."""


class _Best:
    """The best scores so far."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._scores: list[float] = []
        self.worst = -inf
        """What a message must have to be among them."""

    def add(self, score: float) -> None:
        """Take the score of another message."""
        if len(self._scores) < self._count:
            heappush(self._scores, score)
        elif score > self._scores[0]:
            heappushpop(self._scores, score)
        if len(self._scores) == self._count:
            self.worst = self._scores[0]


class Ranking:
    """One question put to views, of which later ones are preferred among equals."""

    def __init__(self, views: Sequence[View], question: Question, narrowing: Narrowing) -> None:
        self._views = views
        self._narrowing = narrowing
        self._allowed: dict[int, set[int] | None] = {}
        self._length_codes: dict[int, Sequence[int]] = {}
        total = sum(view.high - view.low for view in views)
        expect((view.shelf for view in views), (*question.required, *question.helpful))
        terms = [_Term(views, text, total, required=True) for text in question.required]
        terms += [_Term(views, text, total, required=False) for text in question.helpful]
        self._terms = sorted((term for term in terms if term.frequency), key=lambda term: term.frequency)
        self._norms = _norms(views, total)
        having = sum(term.required for term in self._terms)
        self._wanted = having if 1 < having == len(question.required) else -1
        """How many required terms a message must have to come first."""
        self._bonus = sum(term.most for term in self._terms)

    def best(self, count: int) -> Ranked:
        """The best `count` messages, best first, newer ones first among equals."""
        rare = self._rare_terms()
        common = self._terms[len(rare) :]
        scores = self._scores(rare)
        complete = True
        if common:
            scores, complete = self._with_common(scores, common, count)
        best = nlargest(count, self._final(scores))
        return Ranked(
            [(message >> 32, message & _ORDINAL, score) for score, message in best],
            complete,
            len(scores.values) > count or bool(common),
        )

    def _rare_terms(self) -> list[_Term]:
        rare: list[_Term] = []
        places = 0
        for term in self._terms:
            places += term.frequency
            if places > _MOST_PLACES:
                break
            rare.append(term)
        return rare

    def _final(self, scores: _Scores) -> Iterable[tuple[float, int]]:
        wanted, bonus = self._wanted, self._bonus
        if wanted < 0:
            return ((value, message) for message, value in scores.values.items())
        having = scores.having
        return (
            (value + bonus if having.get(message) == wanted else value, message)
            for message, value in scores.values.items()
        )

    def _scores(self, terms: Sequence[_Term]) -> _Scores:
        """What every message with one of the terms gets for them."""
        values: dict[int, float] = {}
        having: dict[int, int] = {}
        value, had = values.get, having.get
        norms = self._norms
        for term in terms:
            once = [term.most / (1 + norm) for norm in norms]
            counted = term.required and self._wanted > 0
            for number, view in enumerate(self._views):
                ordinals, counts = term.places(number)
                if not ordinals:
                    continue
                lengths = view.shelf.lengths()
                base = number << 32
                if term is terms[0] and not counts and self._allowed_in(number) is None:
                    values.update((base + ordinal, once[lengths[ordinal]]) for ordinal in ordinals)
                    if counted:
                        having.update((base + ordinal, 1) for ordinal in ordinals)
                    continue
                for ordinal, times in self._admitted(number, ordinals, counts):
                    message = base + ordinal
                    code = lengths[ordinal]
                    gain = once[code] if times == 1 else term.most * times / (times + norms[code])
                    values[message] = value(message, 0.0) + gain
                    if counted:
                        having[message] = had(message, 0) + 1
        return _Scores(values, having)

    def _admitted(
        self, number: int, ordinals: Sequence[int], counts: Sequence[int]
    ) -> Iterable[tuple[int, int]]:
        """The places in one view that may be found."""
        pairs = zip(ordinals, counts or repeat(1), strict=False)
        allowed = self._allowed_in(number)
        return pairs if allowed is None else (pair for pair in pairs if pair[0] in allowed)

    def _with_common(self, scores: _Scores, common: Sequence[_Term], count: int) -> tuple[_Scores, bool]:
        """The same with common terms, as far as messages may be among the best; whether these surely are."""
        rest = sum(term.most for term in common)
        required = sum(term.required for term in common)
        so_far = self._wanted - required if self._wanted > 0 else -1
        had = scores.having.get
        bounded = len(scores.values) <= _MOST_COMPLETED
        promising = [message for message in scores.values if had(message, 0) == so_far]
        for term in () if bounded else common:
            if term.required:
                promising = [message for message in promising if term.times(message)]
        first = set(promising)
        most = rest + self._bonus
        bounds = [
            (-value - (most if message in first else rest), -message)
            for message, value in scores.values.items()
        ]
        heapify(bounds)
        found = _Scores({}, {})
        best = _Best(count)
        for _ in range(min(_MOST_COMPLETED, len(bounds))):
            bound, message = heappop(bounds)
            if -bound <= best.worst:
                bounded = True
                break
            self._complete(-message, scores, common, (rest, required), found, best)
        unseen = rest + (self._bonus if so_far == 0 else 0.0)
        if best.worst >= unseen:
            return found, bounded
        messages, exact = self._newest(common)
        for message in messages:
            if message not in found.values:
                self._complete(message, scores, common, (rest, required), found, best)
        return found, exact and bounded

    def _complete(
        self,
        message: int,
        scores: _Scores,
        terms: Sequence[_Term],
        sums: tuple[float, int],
        found: _Scores,
        best: _Best,
    ) -> None:
        """Add what a message gets for more terms, until it is surely not among the best.

        `sums` are what it may get for all of them, and how many of them are required.
        """
        number, ordinal = message >> 32, message & _ORDINAL
        value = scores.values.get(message, 0.0)
        having = scores.having.get(message, 0)
        norm = self._norms[self._lengths(number)[ordinal]]
        rest, required = sums
        lacking = self._wanted - having - required
        possible = value + rest + (self._bonus if lacking == 0 else 0.0)
        for term in terms:
            if possible < best.worst - _TRIFLE:
                break
            times = term.finder(number).times(ordinal)
            if times:
                gain = term.most * times / (times + norm)
                value += gain
                possible -= term.most - gain
                having += term.required
            else:
                possible -= term.most
                if term.required:
                    possible -= self._bonus if lacking == 0 else 0.0
                    lacking += 1
        found.values[message] = value
        found.having[message] = having
        best.add(value + self._bonus if having == self._wanted else value)

    def _lengths(self, number: int) -> Sequence[int]:
        if number not in self._length_codes:
            self._length_codes[number] = self._views[number].shelf.lengths()
        return self._length_codes[number]

    def _newest(self, terms: Sequence[_Term]) -> tuple[set[int], bool]:
        """The newest messages with all terms and with each; whether that is every one."""
        found: set[int] = set()
        if len(terms) > 1:
            self._add_newest_with_all(terms, found)
        share = _NEWEST // len(terms) + 1
        exact = True
        for term in terms:
            taken = list(islice(self._from_the_newest(term), share))
            found.update(taken)
            exact = exact and len(taken) < share
        return found, exact

    def _from_the_newest(self, term: _Term) -> Iterator[int]:
        for number in reversed(range(len(self._views))):
            allowed = self._allowed_in(number)
            for ordinal in term.finder(number).backwards():
                if allowed is None or ordinal in allowed:
                    yield number << 32 | ordinal

    def _add_newest_with_all(self, terms: Sequence[_Term], found: set[int]) -> None:
        looked_at = 0
        for number in reversed(range(len(self._views))):
            rarest = terms[0].places(number).ordinals
            allowed = self._allowed_in(number)
            end = len(rarest)
            while end:
                start = max(0, end - _AT_ONCE)
                shared = set(rarest[start:end])
                low, high = rarest[start], rarest[end - 1]
                for term in terms[1:]:
                    if not shared:
                        break
                    if term.frequency > _DENSE * terms[0].frequency or len(shared) < _FEW:
                        looked_at += _DENSE * len(shared)
                        times = term.finder(number).times
                        shared = {ordinal for ordinal in shared if times(ordinal)}
                        continue
                    other = term.places(number).ordinals
                    some = other[bisect_left(other, low) : bisect_right(other, high)]
                    shared.intersection_update(some)
                    looked_at += len(some)
                if allowed is not None:
                    shared &= allowed
                found.update(number << 32 | ordinal for ordinal in shared)
                if len(found) >= _NEWEST or looked_at >= _MOST_LOOKED_AT:
                    return
                end = start

    def _allowed_in(self, number: int) -> set[int] | None:
        """The ordinals of a view that may be found, `None` for all."""
        if number not in self._allowed:
            self._allowed[number] = self._views[number].admitted(self._narrowing)
        return self._allowed[number]


def _norms(views: Sequence[View], total: int) -> list[float]:
    """What stands for the length in the formula, by length code."""
    average = sum(view.total_length() for view in views) / max(total, 1) or 1.0
    return [_K1 * (1 - _B + _B * length / average) for length in LENGTHS]
