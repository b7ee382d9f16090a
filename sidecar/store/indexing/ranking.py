"""The best messages for a question, by BM25, with bounded work for words that are everywhere."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from heapq import heappush, heappushpop, nlargest
from math import log
from typing import NamedTuple

from sidecar.store.indexing.facets import Narrowing
from sidecar.store.indexing.pieces import places_of_character
from sidecar.store.indexing.questions import Question
from sidecar.store.indexing.shelf import LENGTHS, Places, View
from sidecar.store.indexing.terms import is_cjk
from sidecar.store.search import SearchHit

_K1 = 1.2
_B = 0.75
_MOST_PLACES = 10_000
"""Occurrences of rare terms that are all ranked."""
_NEWEST = 600
"""Of matches for common terms alone, only about so many are ranked."""
_MOST_LOOKED_AT = 200_000
"""Occurrences that are looked at for messages with all common terms."""

_Place = tuple[int, int]
"""A message by the number of its view and its ordinal."""


class _Term(NamedTuple):
    places: list[Places]
    """One for each view."""
    frequency: int
    """Messages that have it."""
    most: float
    """No message gets more for this term."""
    required: bool
    complete: bool


class _Score(NamedTuple):
    value: float
    having: int
    """How many required terms the message has."""


class Ranked(NamedTuple):
    """The best messages, and whether there are surely no better ones."""

    hits: list[SearchHit]
    complete: bool
    more: bool
    """Whether worse ones follow."""


class Ranking:
    """One question put to the views of one session, which are in order of position."""

    def __init__(self, views: Sequence[View], question: Question, narrowing: Narrowing) -> None:
        self._views = views
        self._narrowing = narrowing
        self._allowed: dict[int, set[int] | None] = {}
        total = sum(view.high - view.low for view in views)
        terms = [_term(views, text, total, True) for text in question.required]
        terms += [_term(views, text, total, False) for text in question.helpful]
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
        complete = all(term.complete for term in self._terms)
        if common:
            scores, exact = self._with_common(scores, common, count)
            complete = complete and exact
        hits = [
            SearchHit(self._views[number].shelf.first + ordinal, self._final(score))
            for (number, ordinal), score in scores.items()
        ]
        best = nlargest(count, hits, key=lambda hit: (hit.score, hit.position))
        return Ranked(best, complete, len(hits) > count or bool(common))

    def _rare_terms(self) -> list[_Term]:
        rare: list[_Term] = []
        places = 0
        for term in self._terms:
            places += term.frequency
            if places > _MOST_PLACES:
                break
            rare.append(term)
        return rare

    def _final(self, score: _Score) -> float:
        return score.value + self._bonus if score.having == self._wanted else score.value

    def _scores(self, terms: Sequence[_Term]) -> dict[_Place, _Score]:
        """What every message with one of the terms gets for them."""
        found: dict[_Place, _Score] = {}
        nothing = _Score(0.0, 0)
        for number, view in enumerate(self._views):
            for term in terms:
                ordinals, counts = term.places[number]
                if not ordinals:
                    continue
                admits, lengths = self._admits(number), view.shelf.lengths()
                for index, ordinal in enumerate(ordinals):
                    if admits(ordinal):
                        score, having = found.get((number, ordinal), nothing)
                        times = counts[index] if counts else 1
                        score += term.most * times / (times + self._norms[lengths[ordinal]])
                        found[number, ordinal] = _Score(score, having + term.required)
        return found

    def _with_common(
        self, scores: dict[_Place, _Score], common: list[_Term], count: int
    ) -> tuple[dict[_Place, _Score], bool]:
        """The same with common terms, as far as messages may be among the best; whether these surely are."""
        rest = sum(term.most for term in common)
        complete_so_far = self._wanted - sum(term.required for term in common)

        def bound(score: _Score) -> float:
            return score.value + rest + (self._bonus if score.having == complete_so_far else 0.0)

        found: dict[_Place, _Score] = {}
        best: list[float] = []
        for place in sorted(scores, key=lambda place: bound(scores[place]), reverse=True):
            score = scores[place]
            if len(best) == count and bound(score) <= best[0]:
                break
            found[place] = self._increased(place, score, common)
            keep = heappushpop if len(best) == count else heappush
            keep(best, self._final(found[place]))
        nothing = _Score(0.0, 0)
        if len(best) == count and best[0] >= bound(nothing):
            return found, True
        places, exact = self._newest(common)
        for place in places:
            if place not in scores:
                found[place] = self._increased(place, nothing, common)
        return found, exact

    def _increased(self, place: _Place, score: _Score, terms: Sequence[_Term]) -> _Score:
        number, ordinal = place
        value, having = score
        norm = self._norms[self._views[number].shelf.lengths()[ordinal]]
        for term in terms:
            ordinals, counts = term.places[number]
            index = bisect_left(ordinals, ordinal)
            if index < len(ordinals) and ordinals[index] == ordinal:
                times = counts[index] if counts else 1
                value += term.most * times / (times + norm)
                having += term.required
        return _Score(value, having)

    def _newest(self, terms: Sequence[_Term]) -> tuple[set[_Place], bool]:
        """The newest messages with all terms and with each; whether that is every one."""
        found: set[_Place] = set()
        if len(terms) > 1:
            self._add_newest_with_all(terms, found)
        share = _NEWEST // len(terms) + 1
        exact = True
        for term in terms:
            taken = 0
            for number in reversed(range(len(self._views))):
                admits = self._admits(number)
                for ordinal in reversed(term.places[number].ordinals):
                    if admits(ordinal):
                        found.add((number, ordinal))
                        taken += 1
                        if taken == share:
                            break
                if taken == share:
                    exact = False
                    break
        return found, exact

    def _add_newest_with_all(self, terms: Sequence[_Term], found: set[_Place]) -> None:
        looked_at = 0
        for number in reversed(range(len(self._views))):
            rarest, *others = sorted((term.places[number].ordinals for term in terms), key=len)
            admits = self._admits(number)
            shared = {ordinal for ordinal in set(rarest).intersection(*others) if admits(ordinal)}
            found.update((number, ordinal) for ordinal in shared)
            looked_at += len(rarest) + sum(map(len, others))
            if len(found) >= _NEWEST or looked_at >= _MOST_LOOKED_AT:
                break

    def _admits(self, number: int) -> Callable[[int], bool]:
        """Tells which ordinals of a view may be found."""
        if number not in self._allowed:
            self._allowed[number] = self._views[number].admitted(self._narrowing)
        allowed = self._allowed[number]
        return _every if allowed is None else allowed.__contains__


def _every(_ordinal: int) -> bool:
    return True


def _term(views: Sequence[View], text: str, total: int, required: bool) -> _Term:
    places: list[Places] = []
    complete = True
    lone = len(text) == 1 and is_cjk(text)
    for view in views:
        found, all_found = places_of_character(view, text) if lone else (view.places(text), True)
        places.append(found)
        complete = complete and all_found
    frequency = sum(len(each.ordinals) for each in places)
    weight = log(1 + (total - frequency + 0.5) / (frequency + 0.5))
    return _Term(places, frequency, weight * (_K1 + 1), required, complete)


def _norms(views: Sequence[View], total: int) -> list[float]:
    """What stands for the length in the formula, by length code."""
    average = sum(view.total_length() for view in views) / max(total, 1) or 1.0
    return [_K1 * (1 - _B + _B * length / average) for length in LENGTHS]
