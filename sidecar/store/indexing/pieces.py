"""The words and parts of words that a text must have for a literal to be in it."""

from collections.abc import Iterable
from typing import NamedTuple

from sidecar.store.indexing.facets import LONG_RUN
from sidecar.store.indexing.segments import expect
from sidecar.store.indexing.shelf import View
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
    return not (piece.opens and piece.closes) and not is_cjk(piece.run)


def _holders(view: View, piece: Piece) -> set[int] | None:
    run = piece.run
    if is_cjk(run):
        return _cjk_holders(view, run)
    stems = {stem(run)} if piece.opens and piece.closes else set[str]()
    expect((view.shelf,), (LONG_RUN, *stems))
    holders = set(view.places(LONG_RUN).ordinals)
    if len(run) > LONGEST_RUN:
        return holders
    if piece.opens and piece.closes:
        return holders.union(view.places(stem(run)).ordinals)
    words, complete = view.shelf.words(run, opens=piece.opens, closes=piece.closes)
    if not complete:
        return None
    stems = {stem(word) for word in words}
    expect((view.shelf,), tuple(stems))
    return holders.union(*(view.places(term).ordinals for term in stems))


def _cjk_holders(view: View, run: str) -> set[int] | None:
    """Every character is a term, and every pair of a longer run."""
    found: set[int] | None = None
    expect((view.shelf,), pairs(run))
    for pair in pairs(run):
        places = set(view.places(pair).ordinals)
        found = places if found is None else found & places
    return found
