"""Makes one ranking of two by reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

SMOOTHING = 60
"""How little the first places differ: the share of a place is 1 in so many more than its number."""
MEANING = 1.0
"""What a place in the ranking by meaning is worth of the same place in the ranking by words."""
FADING = 0.97
"""What each place behind the last hit by words scores of the one before."""


def fused(
    words: Sequence[tuple[K, float]], meaning: Sequence[K], limit: int, *, unjudged: Collection[K] = ()
) -> list[tuple[K, float]]:
    """At most `limit` of both rankings, best first, with the scores that words give to these places.

    What nobody could judge by its meaning counts as if it had the same place there as among the words.
    Reciprocal ranks decide the order only: they tell nothing of how much better one hit is than the next,
    which the scores do.
    """
    shares: dict[K, float] = {}
    for place, (key, _) in enumerate(words, 1):
        shares[key] = (1 + MEANING * (key in unjudged)) / (SMOOTHING + place)
    for place, key in enumerate(meaning, 1):
        shares[key] = shares.get(key, 0.0) + MEANING / (SMOOTHING + place)
    scores = sorted((score for _, score in words), reverse=True) or [1.0]
    order = sorted(shares, key=lambda key: -shares[key])[:limit]
    while len(scores) < len(order):
        scores.append(scores[-1] * FADING)
    return list(zip(order, scores, strict=False))
