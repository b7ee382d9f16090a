"""Whether a message has what a literal or a regular expression looks for."""

from collections.abc import Callable
from typing import NamedTuple

from sidecar.store.indexing.folding import fold
from sidecar.store.indexing.pieces import Piece, pieces
from sidecar.store.search import SearchError, SearchQuery


class Matcher(NamedTuple):
    """What is looked for."""

    matches: Callable[[str], bool]
    """Tells whether the text of a message is found."""
    pieces: list[Piece]
    """What the text must have for that, as the index knows it."""


def matcher(query: SearchQuery) -> Matcher:
    """What a query of the kind `literal` or `regex` looks for.

    Raises:
        SearchError: the expression cannot be understood.
    """
    if not query.text and (query.kind == "regex" or not query.is_narrowed):
        raise SearchError("there is nothing to look for: the text is empty")
    if query.kind == "literal":
        folded = fold(query.text)

        def holds(text: str) -> bool:
            return folded in fold(text)

        return Matcher(holds, pieces(folded))
    from sidecar.store.indexing.patterns import compile_pattern, required_text

    matches = compile_pattern(query.text)
    return Matcher(matches, [piece for text in required_text(query.text) for piece in pieces(text)])
