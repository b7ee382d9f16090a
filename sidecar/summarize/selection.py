"""Chooses the pieces that a summary of a given length quotes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sidecar.summarize.candidates import Piece

TOKENS_PER_PART = 90
"""A summary has room for one trace of so many parts of its range: one for each of these many tokens."""
CHARACTERS_OF_OVERHEAD = 60
"""What the mark of a bullet takes, so that short pieces do not look free."""
MISSES_BEFORE_END = 60
"""Pieces in a row that did not fit, after which the summary counts as full."""
SAME_MESSAGE_DISCOUNT = 0.22


class Selection:
    """The pieces chosen so far, and the tokens they take."""

    def __init__(self, tokens_of: Callable[[Piece], int]) -> None:
        self._tokens_of = tokens_of
        self._seen: set[str] = set()
        self.chosen: dict[int, Piece] = {}
        self.tokens = 0

    def add(self, piece: Piece, budget: int) -> bool:
        """Choose a piece if `budget` has room for it; false where it has not, or another says the same."""
        if piece.order in self.chosen:
            return False
        essence = "".join(filter(str.isalnum, piece.text)).lower()
        if essence in self._seen:
            return False
        tokens = self._tokens_of(piece)
        if self.tokens + tokens > budget:
            return False
        self._seen.add(essence)
        self.chosen[piece.order] = piece
        self.tokens += tokens
        return True


def select(
    pieces: Sequence[Piece], worths: Sequence[float], budget: int, tokens_of: Callable[[Piece], int]
) -> list[Piece]:
    """The pieces worth most that fit into `budget` tokens, in order, with a trace of every part of the range.

    `tokens_of` is asked at most once for each piece.
    """
    values = _values(pieces, worths)
    selection = Selection(_remember(tokens_of))
    for piece in _best_of_each_part(pieces, values, budget // TOKENS_PER_PART):
        selection.add(piece, budget)
    misses = 0
    for piece in sorted(pieces, key=lambda piece: -values[piece.order]):
        if piece.order in selection.chosen:
            continue
        misses = 0 if selection.add(piece, budget) else misses + 1
        if misses == MISSES_BEFORE_END:
            break
    return [selection.chosen[order] for order in sorted(selection.chosen)]


def _values(pieces: Sequence[Piece], worths: Sequence[float]) -> list[float]:
    """Worth for the room taken; the second piece of a message counts less than its first, and so on."""
    values = [
        worth / (len(piece.text) + CHARACTERS_OF_OVERHEAD) ** 0.5
        for piece, worth in zip(pieces, worths, strict=True)
    ]
    rank_in_source: dict[int, int] = {}
    for piece in sorted(pieces, key=lambda piece: -values[piece.order]):
        rank = 0
        if piece.source >= 0:
            rank = rank_in_source.get(piece.source, 0)
            rank_in_source[piece.source] = rank + 1
        values[piece.order] /= 1 + SAME_MESSAGE_DISCOUNT * rank
    return values


def _best_of_each_part(pieces: Sequence[Piece], values: Sequence[float], parts: int) -> list[Piece]:
    """The most valuable piece of each of `parts` stretches of the range, most valuable first."""
    if not pieces or parts < 1:
        return []
    places = [piece.source if piece.source >= 0 else piece.order for piece in pieces]
    stretch = places[-1] - places[0] + 1
    parts = min(parts, stretch)
    best: dict[int, Piece] = {}
    for piece, place in zip(pieces, places, strict=True):
        part = (place - places[0]) * parts // stretch
        if part not in best or values[piece.order] > values[best[part].order]:
            best[part] = piece
    return sorted(best.values(), key=lambda piece: -values[piece.order])


def _remember(tokens_of: Callable[[Piece], int]) -> Callable[[Piece], int]:
    known: dict[int, int] = {}

    def remembered(piece: Piece) -> int:
        tokens = known.get(piece.order)
        if tokens is None:
            tokens = known[piece.order] = tokens_of(piece)
        return tokens

    return remembered
