"""The terms by which a text is found, the same in every store.

A word is found by its stem, a compound name or path whole and in parts, a run of Han, kana or hangul by the
pairs of its characters.
"""

import re
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple
from unicodedata import is_normalized, normalize

LONGEST_RUN = 64
"""Longer runs of letters and digits are not indexed as words."""
LONGEST_NAME = 80
"""Characters of a compound name, such as a path, that is still a term as a whole."""
MOST_TERMS = 64
"""Terms of a question."""
_MOST_QUESTION = 20_000
"""Characters of a question that are looked at."""
_REMEMBERED = 60_000

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
_ASCII_LONG = re.compile(rf"[A-Za-z0-9]{{{LONGEST_RUN + 1},}}")
_CAMEL_TOKEN = re.compile(r"[A-Za-z0-9]*[a-z0-9][A-Z][A-Za-z0-9]*")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_IS_CJK = re.compile(rf"[{CJK_CHARACTERS}]")
_JOINED = str.maketrans("._/-", "\ue000\ue001\ue002\ue003")
"""Joints inside of a name are written as letters, so that a tokenizer of words leaves the name whole."""

_LISTED = """
a about after again all also am an and any are as at be been before being both but by can could did do does
doing done each few for from further get got had has have having he her here hers him his how i if in into is
it its itself just let like ll may me might more most must my no nor not now of off on once only or other our
ours out over own please re same shall she should so some such tell than that the their theirs them then there
these they this those through to too under until up us ve very was we were what when where which while who
whom whose why will with would you your yours
"""

STOP_WORDS = frozenset(_LISTED.split())
"""English words that say nothing about what is looked for: left out of a question with any other words."""


class Expansion(NamedTuple):
    """What one word, compound name or CJK run of a text is found by."""

    required: tuple[str, ...]
    """The stems of its runs, or the pairs of its characters."""
    terms: tuple[str, ...]
    """The same, and with them the whole of a compound name, and the parts that capitals divide it into."""
    spelled: tuple[str, ...]
    """The words that the terms are the stems of."""
    last: str
    """The character at the end of a CJK run, which begins no pair."""


class DocumentTerms(NamedTuple):
    """What a text is found by."""

    counts: dict[str, int]
    """How often each term occurs."""
    length: int
    """Occurrences of terms."""


class Question(NamedTuple):
    """The terms of a query."""

    required: tuple[str, ...]
    """Messages with all of these come first."""
    helpful: tuple[str, ...]
    """Names as a whole, and parts of names."""
    spelled: dict[str, str]
    """For each of them a word with this stem."""


_expansions: dict[str, Expansion] = {}
_lock = threading.Lock()
_tokenizer: Any = None


def fold(text: str) -> str:
    """`text` in NFKC, case folded: the form in which texts are compared."""
    if text.isascii():
        return text.lower()
    folded = normalize("NFKC", text).casefold()
    return folded if is_normalized("NFKC", folded) else normalize("NFKC", folded)


def stem(word: str) -> str:
    """The stem of a folded English word, by SQLite's Porter tokenizer; any other is its own stem."""
    if not (2 < len(word) <= LONGEST_RUN and word.isascii() and word.isalpha()):
        return word
    global _tokenizer
    import apsw

    with _lock:
        if _tokenizer is None:
            _tokenizer = apsw.Connection(":memory:").fts5_tokenizer("porter", ["ascii"])
        found = _tokenizer(
            word.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
        )
    return found[0]


def is_cjk(run: str) -> bool:
    """Whether a run is of Han, kana or hangul."""
    return _IS_CJK.match(run) is not None


def pairs(run: str) -> list[str]:
    """Overlapping pairs of the characters of a run; a run of one stays alone."""
    return [run] if len(run) == 1 else [run[start : start + 2] for start in range(len(run) - 1)]


def tokens(text: str) -> list[str]:
    """The words, compound names and CJK runs of a text, in order; folded unless the text is all ASCII."""
    return _ASCII_TOKEN.findall(text) if text.isascii() else _TOKEN.findall(fold(text))


def expand(token: str) -> Expansion:
    """What a word, compound name or CJK run is found by."""
    found = _expansions.get(token)
    if found is None:
        found = _expanded(token)
        if len(token) <= LONGEST_NAME and token.isalpha() and not is_cjk(token):
            if len(_expansions) >= _REMEMBERED:
                _expansions.clear()
            _expansions[token] = found
    return found


def document_terms(text: str) -> DocumentTerms:
    """Everything that a text is found by."""
    counts: dict[str, int] = {}
    length = 0
    lasts: set[str] = set()
    known = _expansions
    for token, times in Counter(tokens(text)).items():
        expansion = known.get(token) or expand(token)
        length += times * len(expansion.terms)
        for term in expansion.terms:
            counts[term] = counts.get(term, 0) + times
        if expansion.last:
            lasts.add(expansion.last)
    for character in lasts:
        counts.setdefault(character, 1)
    for name in _camel_names(text):
        expansion = expand(name)
        for term in expansion.terms[len(expansion.required) :]:
            counts[term] = counts.get(term, 0) + 1
    return DocumentTerms(counts, length)


def question(text: str) -> Question:
    """The terms of a query, stop words left out as long as there are others; the longest where too many."""
    text = text[:_MOST_QUESTION]
    found = list(dict.fromkeys(tokens(text)))
    telling = [token for token in found if fold(token) not in STOP_WORDS] or found
    required: dict[str, None] = {}
    spelled: dict[str, str] = {}
    for token in telling:
        expansion = expand(token)
        required.update(dict.fromkeys(expansion.required))
        spelled |= zip(expansion.terms, expansion.spelled, strict=True)
    for name in _camel_names(text):
        expansion = expand(name)
        extra = slice(len(expansion.required), None)
        spelled |= zip(expansion.terms[extra], expansion.spelled[extra], strict=True)
    helpful = (term for term in spelled if term not in required)
    return Question(_longest(required), _longest(helpful), spelled)


def prepared(text: str) -> str:
    """The text as a tokenizer is given it that divides ASCII at what is no letter or digit, and stems.

    It makes of it the terms of the text, and few others.
    """
    if text.isascii():
        found = [
            _written(word)
            for token in set(_ASCII_TOKEN.findall(text))
            if not (token.isalnum() and _is_plain(token))
            for expansion in (expand(token),)
            for word in expansion.spelled[len(expansion.required) :]
        ]
        return " ".join((_ASCII_LONG.sub(" ", text), *found))
    words: list[str] = []
    for token in _TOKEN.findall(fold(text)):
        if token.isascii() and token.isalnum():
            if len(token) <= LONGEST_RUN:
                words.append(token)
            continue
        expansion = expand(token)
        words += map(_written, expansion.spelled)
        if expansion.last:
            words.append(expansion.last)
    for name in _camel_names(text):
        expansion = expand(name)
        words += map(_written, expansion.spelled[len(expansion.required) :])
    return " ".join(words)


def _is_plain(token: str) -> bool:
    """Whether a word has no parts: small letters and digits, or a capital in front of small letters."""
    rest = token[1:]
    return token.islower() or token.isdigit() or (rest.isalpha() and rest.islower())


def asked(word: str) -> str:
    """A word of a question as `prepared` writes it, in the quotes of a full-text query.

    A CJK character alone stands for every pair that begins with it.
    """
    quoted = f'"{_written(word)}"'
    return f"{quoted}*" if len(word) == 1 and is_cjk(word) else quoted


def _written(word: str) -> str:
    return word.translate(_JOINED)


def _camel_names(text: str) -> list[str]:
    """The names with inner capitals of a text that is folded as a whole."""
    return [] if text.isascii() else _CAMEL_TOKEN.findall(normalize("NFKC", text))


def _expanded(token: str) -> Expansion:
    if is_cjk(token):
        found = tuple(pairs(token))
        return Expansion(found, found, found, token[-1])
    folded = fold(token)
    runs = RUN.findall(folded)
    words = [run for run in runs if len(run) <= LONGEST_RUN]
    stems = tuple(map(stem, words))
    extra: dict[str, str] = {}
    if len(runs) > 1 and len(folded) <= LONGEST_NAME:
        extra[folded] = folded
    if folded != token:
        for run in RUN.findall(token):
            parts = _CAMEL_PART.findall(run)
            if len(parts) > 1:
                extra |= {stem(part.lower()): part.lower() for part in parts if len(part) <= LONGEST_RUN}
    return Expansion(stems, stems + tuple(extra), (*words, *extra.values()), "")


def _longest(terms: Iterable[str]) -> tuple[str, ...]:
    listed = list(terms)
    if len(listed) <= MOST_TERMS:
        return tuple(listed)
    return tuple(sorted(listed, key=len, reverse=True)[:MOST_TERMS])
