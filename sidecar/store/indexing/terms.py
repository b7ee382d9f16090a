"""The terms by which a text is found."""

import re
from collections import Counter
from typing import NamedTuple
from unicodedata import normalize

from sidecar.store.indexing.folding import fold
from sidecar.store.indexing.stemming import stem

LONGEST_RUN = 64
"""Longer runs of letters and digits are not indexed; messages with one carry `LONG_RUN`."""
LONGEST_NAME = 80
"""Characters of a compound name, such as a path, that is still a term as a whole."""
_REMEMBERED = 30_000

CJK_CHARACTERS = (
    "\u3005\u3040-\u30fa\u30fc-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Those of Han, kana and hangul, for a class of an expression."""
_LETTER = rf"[^\W_{CJK_CHARACTERS}]"
_JOINT = r"[._/\-]+"
RUN = re.compile(rf"[{CJK_CHARACTERS}]+|{_LETTER}+")
"""A run of letters and digits, or of Han, kana and hangul."""
_TOKEN = re.compile(rf"[{CJK_CHARACTERS}]+|{_LETTER}+(?:{_JOINT}{_LETTER}+)*")
_ASCII_TOKEN = re.compile(rf"[A-Za-z0-9]+(?:{_JOINT}[A-Za-z0-9]+)*")
_CAMEL_TOKEN = re.compile(r"[A-Za-z0-9]*[a-z0-9][A-Z][A-Za-z0-9]*")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_IS_CJK = re.compile(rf"[{CJK_CHARACTERS}]")


class Expansion(NamedTuple):
    """What one word, compound name or CJK run of a text is found by."""

    required: tuple[str, ...]
    """The stems of its runs, or the pairs of its characters."""
    terms: tuple[str, ...]
    """The same, and with them the whole of a compound name, and the parts that capitals divide it into."""
    words: tuple[str, ...]
    """What of it is kept as it is spelled, folded, so that parts of it are found."""
    last: str
    """The character at the end of a CJK run, which begins no pair."""
    has_long_run: bool


class DocumentTerms(NamedTuple):
    """What a text is found by."""

    counts: dict[str, int]
    """How often each term occurs."""
    tokens: list[str]
    """Its words and compound names; `expand` tells what is kept of them."""
    length: int
    """Occurrences of terms."""
    has_long_run: bool


_expansions: dict[str, Expansion] = {}


def is_cjk(run: str) -> bool:
    """Whether a run is of Han, kana or hangul."""
    return _IS_CJK.match(run) is not None


def pairs(run: str) -> list[str]:
    """Overlapping pairs of the characters of a run; a run of one stays alone."""
    return [run] if len(run) == 1 else [run[start : start + 2] for start in range(len(run) - 1)]


def tokens(text: str) -> list[str]:
    """The words, compound names and CJK runs of a text, in order; folded unless the text is all ASCII."""
    return _ASCII_TOKEN.findall(text) if text.isascii() else _TOKEN.findall(fold(text))


def camel_names(text: str) -> list[str]:
    """The names with inner capitals of a text that is not all ASCII."""
    return _CAMEL_TOKEN.findall(normalize("NFKC", text))


def expand(token: str) -> Expansion:
    """What a word, compound name or CJK run is found by."""
    found = _expansions.get(token)
    if found is None:
        found = _expanded(token)
        if len(token) <= LONGEST_NAME and not is_cjk(token):
            if len(_expansions) >= _REMEMBERED:
                _expansions.clear()
            _expansions[token] = found
    return found


def document_terms(text: str) -> DocumentTerms:
    """Everything that a text is found by."""
    counts: dict[str, int] = {}
    length = 0
    has_long_run = False
    named: list[str] = []
    lasts: set[str] = set()
    known = _expansions
    for token, times in Counter(tokens(text)).items():
        expansion = known.get(token) or expand(token)
        terms = expansion.terms
        length += times * len(terms)
        for term in terms:
            if term in counts:
                counts[term] += times
            else:
                counts[term] = times
        if expansion.last:
            lasts.add(expansion.last)
        else:
            named.append(token)
        if expansion.has_long_run:
            has_long_run = True
    for character in lasts:
        counts.setdefault(character, 1)
    if not text.isascii():
        for name in camel_names(text):
            expansion = expand(name)
            for term in expansion.terms[len(expansion.required) :]:
                counts[term] = counts.get(term, 0) + 1
    return DocumentTerms(counts, named, length, has_long_run)


def _expanded(token: str) -> Expansion:
    if is_cjk(token):
        found = tuple(pairs(token))
        return Expansion(found, found, (), token[-1], False)
    folded = fold(token)
    runs = tuple(RUN.findall(folded))
    stems = tuple(stem(run) for run in runs if len(run) <= LONGEST_RUN)
    extra: dict[str, None] = {}
    if len(runs) > 1 and len(folded) <= LONGEST_NAME:
        extra[folded] = None
    if folded != token:
        for run in RUN.findall(token):
            parts = _CAMEL_PART.findall(run)
            if len(parts) > 1:
                extra.update((stem(part.lower()), None) for part in parts if len(part) <= LONGEST_RUN)
    words = tuple(run for run in runs if len(run) <= LONGEST_RUN)
    return Expansion(stems, stems + tuple(extra), words, "", len(words) < len(runs))
