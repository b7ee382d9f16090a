"""Counts tokens without a vocabulary."""

from __future__ import annotations

import re
from collections.abc import Callable

from sidecar.tokens.chunks import chunks
from sidecar.tokens.piece_costs import eastern_piece_cost, piece_cost, western_piece_cost
from sidecar.tokens.pieces import pieces

ACCENTED = re.compile("[à-öø-ÿ\u0100-\u024f]")
EASTERN = re.compile("[\u0100-\u024f]")
CHARACTERS_PER_ACCENT = 350
"""Text with more accented letters than one in so many is taken for a language other than English."""
BLOB = re.compile("[A-Za-z0-9+/_-]{20,}")
BLOB_SURCHARGE = 0.08
"""Tokens that each character of base64 takes more than the same letters in words would."""
LEAN = 1.01
"""Estimates lean up a little: too little context costs less than an overflow."""
REMEMBERED_PIECES = 20_000
LONGEST_REMEMBERED = 32


class PieceCosts(dict[str, float]):
    """Costs of the pieces met so far, worked out at the first look-up; any thread may use it."""

    def __init__(self, cost: Callable[[str], float]) -> None:
        super().__init__()
        self.cost = cost

    def __missing__(self, piece: str) -> float:
        cost = self.cost(piece)
        if len(piece) <= LONGEST_REMEMBERED:
            if len(self) >= REMEMBERED_PIECES:
                self.clear()
            self[piece] = cost
        return cost


class EstimateCounter:
    """Counts close to those of the o200k vocabulary, from the shape of the text alone."""

    name = "estimate-1"
    exact = False

    def __init__(self) -> None:
        self._english = PieceCosts(piece_cost)
        self._western = PieceCosts(western_piece_cost)
        self._eastern = PieceCosts(eastern_piece_cost)

    def count(self, text: str) -> int:
        """The likely number of tokens of `text`; 0 for empty text only, never raises."""
        tokens = 0.0
        for chunk in chunks(text):
            tokens += sum(map(self._costs_for(chunk).__getitem__, pieces(chunk)))
            tokens += BLOB_SURCHARGE * sum(len(blob) for blob in BLOB.findall(chunk) if _is_random(blob))
        return max(int(tokens * LEAN + 0.5), 1 if text else 0)

    def _costs_for(self, text: str) -> PieceCosts:
        if text.isascii() or len(ACCENTED.findall(text)) * CHARACTERS_PER_ACCENT <= len(text):
            return self._english
        if len(EASTERN.findall(text)) * 2 * CHARACTERS_PER_ACCENT > len(text):
            return self._eastern
        return self._western


def _is_random(blob: str) -> bool:
    """True for base64 and generated ids, False for paths and long names."""
    uppercase = sum(map(str.isupper, blob))
    digits = sum(map(str.isdigit, blob))
    return uppercase * 5 > len(blob) and digits * 20 > len(blob) and uppercase * 5 < 4 * len(blob)
