"""Ranks texts by how well they fit a question."""

from __future__ import annotations

from collections import Counter
from math import log

from sidecar.episodes.contract import Remembered
from sidecar.store.indexing.questions import question
from sidecar.store.indexing.terms import document_terms

K1 = 1.2
B = 0.75
TERM = 6
"""Characters of a term with what follows it, about; for texts that are not looked at closely."""


class Ranked:
    """Takes texts one after the other; the best are known at the end."""

    def __init__(self, query: str) -> None:
        asked = question(query)
        self._terms = frozenset((*asked.required, *asked.helpful))
        self._found: list[tuple[Remembered, dict[str, int], int]] = []
        self._having: Counter[str] = Counter()
        self._texts = 0
        self._length = 0

    def add(self, candidate: Remembered) -> None:
        """Look at a text."""
        self._texts += 1
        folded = candidate.text.casefold()
        if not any(term in folded for term in self._terms):
            self._length += len(folded) // TERM
            return
        terms = document_terms(candidate.text)
        self._length += terms.length
        having = {term: terms.counts[term] for term in self._terms if term in terms.counts}
        if having:
            self._having.update(having.keys())
            self._found.append((candidate, having, terms.length))

    def best(self, limit: int) -> list[Remembered]:
        """The best of them, by BM25; among equals, those that came last."""
        average = self._length / self._texts if self._texts else 1.0
        scored = [
            candidate._replace(score=self._score(having, length, average))
            for candidate, having, length in reversed(self._found)
        ]
        return sorted(scored, key=lambda found: found.score, reverse=True)[:limit]

    def _score(self, having: dict[str, int], length: int, average: float) -> float:
        score = 0.0
        for term, count in having.items():
            worth = log(1 + (self._texts - self._having[term] + 0.5) / (self._having[term] + 0.5))
            score += worth * count * (K1 + 1) / (count + K1 * (1 - B + B * length / average))
        return score
