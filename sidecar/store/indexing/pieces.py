"""The words and parts of words that a text must have for a literal to be in it."""

from collections.abc import Iterable
from typing import NamedTuple

from sidecar.store.indexing.facets import LONG_RUN
from sidecar.store.indexing.shelf import Places, View
from sidecar.store.indexing.stemming import stem
from sidecar.store.indexing.terms import LONGEST_RUN, RUN, is_cjk, pairs

_FEW = 20
"""Candidates that are sooner looked at than narrowed further by a part of a word."""


class Piece(NamedTuple):
    """A run of the literal; beyond an end that is open, the text may go on with the same run."""

    run: str
    opens: bool
    """Whether the run starts here."""
    closes: bool
    """Whether the run ends here."""


def pieces(folded: str) -> list[Piece]:
    """The runs of a folded literal, and whether they are whole."""
    return [Piece(found[0], found.start() > 0, found.end() < len(folded)) for found in RUN.finditer(folded)]


def candidates(view: View, wanted: Iterable[Piece]) -> set[int] | None:
    """The ordinals of messages that may have all pieces, `None` where that cannot be told."""
    found: set[int] | None = None
    for piece in sorted(wanted, key=_cost):
        if found is not None and (not found or (_cost(piece) and len(found) <= _FEW)):
            break
        places = _holders(view, piece)
        if places is not None:
            found = places if found is None else found & places
    return found


def _cost(piece: Piece) -> bool:
    """Whether all words must be gone through to find what holds the piece."""
    return len(piece.run) < 2 if is_cjk(piece.run) else not (piece.opens and piece.closes)


def _holders(view: View, piece: Piece) -> set[int] | None:
    run = piece.run
    if is_cjk(run):
        return _cjk_holders(view, piece)
    holders = set(view.places(LONG_RUN).ordinals)
    if len(run) > LONGEST_RUN:
        return holders
    if piece.opens and piece.closes:
        return holders.union(view.places(stem(run)).ordinals)
    words, complete = view.shelf.words(run, opens=piece.opens, closes=piece.closes)
    if not complete:
        return None
    return holders.union(*(view.places(term).ordinals for term in {stem(word) for word in words}))


def _cjk_holders(view: View, piece: Piece) -> set[int] | None:
    """Every pair of a longer run is a term; a lone character may be any half of one."""
    if len(piece.run) == 1:
        places, complete = places_of_character(view, piece.run)
        return set(places.ordinals) if complete else None
    found: set[int] | None = None
    for pair in pairs(piece.run):
        places = set(view.places(pair).ordinals)
        found = places if found is None else found & places
    return found


def places_of_character(view: View, character: str) -> tuple[Places, bool]:
    """Where a character of Han, kana or hangul occurs, alone or in a pair, and whether these are all."""
    words, complete = view.shelf.words(character, opens=False, closes=False)
    ordinals = {ordinal for word in words for ordinal in view.places(word).ordinals}
    return Places(sorted(ordinals), ()), complete
