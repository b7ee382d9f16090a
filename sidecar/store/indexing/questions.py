"""What a query of words asks for."""

from collections.abc import Iterable
from typing import NamedTuple

from sidecar.store.indexing.folding import fold
from sidecar.store.indexing.stop_words import STOP_WORDS
from sidecar.store.indexing.terms import camel_names, expand, tokens

MOST_TERMS = 64
_MOST_TEXT = 20_000
"""Characters of a query that are looked at."""


class Question(NamedTuple):
    """The terms of a query."""

    required: tuple[str, ...]
    """Messages with all of these come first."""
    helpful: tuple[str, ...]
    """Names as a whole, and parts of names."""


def question(text: str) -> Question:
    """The terms of a query, stop words left out as long as there are others; the longest where too many."""
    text = text[:_MOST_TEXT]
    found = list(dict.fromkeys(tokens(text)))
    telling = [token for token in found if fold(token) not in STOP_WORDS] or found
    required: dict[str, None] = {}
    helpful: dict[str, None] = {}
    for token in telling:
        expansion = expand(token)
        required.update(dict.fromkeys(expansion.required))
        helpful.update(dict.fromkeys(expansion.terms))
    if not text.isascii():
        for name in camel_names(text):
            expansion = expand(name)
            helpful.update(dict.fromkeys(expansion.terms[len(expansion.required) :]))
    return Question(_longest(required), _longest(term for term in helpful if term not in required))


def _longest(terms: Iterable[str]) -> tuple[str, ...]:
    listed = list(terms)
    if len(listed) <= MOST_TERMS:
        return tuple(listed)
    return tuple(sorted(listed, key=len, reverse=True)[:MOST_TERMS])
