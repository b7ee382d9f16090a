"""The terms by which a text is found, the same in every store.

A word is found by its stem, a compound name or path whole and in parts, a run of Han, kana or hangul by its
characters and their pairs.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple, cast
from unicodedata import is_normalized, normalize

LONGEST_RUN = 64
"""Longer runs of letters and digits are not indexed as words."""
LONGEST_NAME = 80
"""Characters of a compound name, such as a path, that is still a term as a whole."""
MOST_TERMS = 64
"""Terms of a question."""
_MOST_QUESTION = 20_000
"""Characters of a question that are looked at."""
_REMEMBERED = 30_000
_SHORT = 40
"""Characters of a word that what is made of it is remembered for."""
PART = 3
"""Characters of the parts of words that an index has."""

CJK_CHARACTERS = (
    "\u3005\u3040-\u30fa\u30fc-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Those of Han, kana and hangul, for a class of an expression."""
_LETTER = rf"[^\W_{CJK_CHARACTERS}]"
_JOINT = r"[._/\-]+"
_RUN = rf"[{CJK_CHARACTERS}]+|{_LETTER}+"
_ASCII_RUN = re.compile(r"[A-Za-z0-9]+")
_TOKEN = rf"[{CJK_CHARACTERS}]+|{_LETTER}+(?:{_JOINT}{_LETTER}+)*"
_ASCII_TOKEN = re.compile(rf"[A-Za-z0-9]+(?:{_JOINT}[A-Za-z0-9]+)*")
_CAMEL_TOKEN = re.compile(r"[A-Za-z0-9]*[a-z0-9][A-Z][A-Za-z0-9]*")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_CJK_RUN = rf"[{CJK_CHARACTERS}]+"
_JOINED = str.maketrans("._/-", "\ue000\ue001\ue002\ue003")
"""Joints inside a name are written as letters, so that a tokenizer leaves the name whole."""
_UNJOINED = {code: chr(joint) for joint, code in _JOINED.items()}
_AROUND = ".,:;!?\"'()[]{}<>`*=-/_"
_PART_MARK = "\x80"
"""Stands in front of a part of a word, to tell it from a word."""
_PART_SIGNS = str.maketrans({chr(code): chr(0x80 + code) for code in range(128) if not chr(code).isalnum()})
"""The same for signs in a part. A letter of Latin-1 that is mistaken for one costs a look at the text."""
_UNKEPT = re.compile("[\0\ud800-\udfff]+")
"""Characters that no index keeps."""

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


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """Compiled at the first text that needs it: classes this large cost a start 8 ms."""
    return re.compile(pattern)


def runs(text: str) -> Iterator[re.Match[str]]:
    """The runs of letters and digits, or of Han, kana and hangul, in a text."""
    return _ASCII_RUN.finditer(text) if text.isascii() else _expression(_RUN).finditer(text)


def is_cjk(run: str) -> bool:
    """Whether a run is of Han, kana or hangul."""
    return not run.isascii() and _expression(_CJK_RUN).match(run) is not None


def pairs(run: str) -> list[str]:
    """Overlapping pairs of the characters of a run; a run of one stays alone."""
    return [run] if len(run) == 1 else [run[start : start + 2] for start in range(len(run) - 1)]


def tokens(text: str) -> list[str]:
    """The words, compound names and CJK runs of a text, in order; folded unless the text is all ASCII."""
    return _ASCII_TOKEN.findall(text) if text.isascii() else _expression(_TOKEN).findall(fold(text))


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
    found = index_words(text.split())
    if not found.isascii():
        found = found.translate(_UNJOINED)
    counts = Counter(found.split())
    return DocumentTerms(counts, counts.total())


def question(text: str) -> Question:
    """The terms of a query, stop words left out as long as there are others; the longest where too many."""
    text = text[:_MOST_QUESTION]
    found = list(dict.fromkeys(tokens(text)))
    telling = [token for token in found if fold(token) not in STOP_WORDS] or found
    required: dict[str, None] = {}
    terms: dict[str, None] = {}
    for token in telling:
        expansion = expand(token)
        required.update(dict.fromkeys(expansion.required))
        terms.update(dict.fromkeys(expansion.terms))
    for name in _camel_names(text):
        expansion = expand(name)
        terms.update(dict.fromkeys(expansion.terms[len(expansion.required) :]))
    return Question(_longest(required), _longest(term for term in terms if term not in required))


class _Prepared:
    """What an index is given of words between white spaces, remembered for those that come often."""

    def __init__(self, make: Callable[[str], str]) -> None:
        self._make = make
        self._new: dict[str, str] = {}
        self._old: dict[str, str] = {}

    def __call__(self, words: Collection[str]) -> str:
        """What is made of all the words, separated by spaces."""
        found = list(map(self._new.get, words))
        if None in found:
            found = [
                self._look_up(word) if made is None else made for word, made in zip(words, found, strict=True)
            ]
        return " ".join(cast(list[str], found))

    def _look_up(self, word: str) -> str:
        made = self._old.get(word)
        if made is None:
            made = self._make(word)
        if len(word) <= _SHORT:
            if len(self._new) >= _REMEMBERED:
                self._new, self._old = {}, self._new
            self._new[word] = made
        return made


def parts_of(folded: str) -> list[str]:
    """Every `PART` characters in the words of a folded text; not of Chinese, of which pairs are terms."""
    if not folded.isascii():
        folded = _UNKEPT.sub(" ", _expression(_CJK_RUN).sub(" ", folded))
    found = {word[at : at + PART] for word in folded.split() for at in range(len(word) - PART + 1)}
    return list(found)


def written(term: str) -> str:
    """A term as an index is given it: a tokenizer that divides at ASCII signs leaves it whole."""
    return term.translate(_JOINED)


def written_part(part: str) -> str:
    """The same of a part of a word."""
    return _PART_MARK + part.translate(_PART_SIGNS)


def _words_of(word: str) -> str:
    bare = word.strip(_AROUND)
    if bare.isalnum() and bare.isascii() and len(bare) <= LONGEST_RUN:
        rest = bare[1:]
        if bare.islower() or bare.isdigit() or (rest.isalpha() and rest.islower()):
            return stem(bare.lower())
    found: list[str] = []
    for token in tokens(word):
        found += expand(token).terms
        if len(token) > 1 and is_cjk(token):
            found += token
    for name in _camel_names(word):
        expansion = expand(name)
        found += expansion.terms[len(expansion.required) :]
    return " ".join(map(written, found))


def _parts_of_word(word: str) -> str:
    if word.isascii():
        signs = word.lower().translate(_PART_SIGNS)
        return " ".join({_PART_MARK + signs[at : at + PART] for at in range(len(signs) - PART + 1)})
    return " ".join(map(written_part, parts_of(fold(word))))


index_words = _Prepared(_words_of)
"""The terms of words as an index is given them, as often as they occur."""
index_both = _Prepared(lambda word: f"{_words_of(word)} {_parts_of_word(word)}")
"""The same with the parts of the words."""


def _camel_names(text: str) -> list[str]:
    """The names with inner capitals of a text that is folded as a whole."""
    return [] if text.isascii() else _CAMEL_TOKEN.findall(normalize("NFKC", text))


def _expanded(token: str) -> Expansion:
    if is_cjk(token):
        found = tuple(pairs(token))
        return Expansion(found, found)
    folded = fold(token)
    words = [run[0] for run in runs(folded)]
    stems = tuple(stem(word) for word in words if len(word) <= LONGEST_RUN)
    extra: dict[str, None] = {}
    if len(words) > 1 and len(folded) <= LONGEST_NAME:
        extra[folded] = None
    if folded != token:
        for run in runs(token):
            parts = _CAMEL_PART.findall(run[0])
            if len(parts) > 1:
                extra |= {stem(part.lower()): None for part in parts if len(part) <= LONGEST_RUN}
    return Expansion(stems, stems + tuple(extra))


def _longest(terms: Iterable[str]) -> tuple[str, ...]:
    listed = list(terms)
    if len(listed) <= MOST_TERMS:
        return tuple(listed)
    return tuple(sorted(listed, key=len, reverse=True)[:MOST_TERMS])
