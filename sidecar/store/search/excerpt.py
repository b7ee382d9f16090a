"""Cuts out of a long text the part that matters."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING
from unicodedata import normalize

if TYPE_CHECKING:
    from sidecar.store.search import SearchKind

ELLIPSIS = "…"

Passage = Callable[[str, int], str]
"""The part of a text that matters, in a number of characters."""

_WORD = re.compile(r"\w+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_MOST_WORDS = 40
_SHORTEST_WORD = 3
_STEP = 4
"""Windows that are compared overlap, this many to a length."""


def passage_for(kind: SearchKind, wanted: str) -> Passage:
    """What cuts out of a text the part that a search of this kind has found.

    Raises:
        SearchError: it is no regular expression.
    """
    if kind == "literal":
        return lambda text, length: around(text, wanted, length)
    if kind == "words":
        return lambda text, length: best_passage(text, wanted, length)
    from sidecar.store.search.query import compile_finder

    find = compile_finder(wanted)

    def matching(text: str, length: int) -> str:
        if len(text) <= length:
            return text
        begin, end = find(text) or (0, 0)
        return cut(text, begin - max(length - (end - begin), 0) // 3, length)

    return matching


def around(text: str, query: str, length: int) -> str:
    """At most `length` characters of the text: around the first `query` in it, else its beginning."""
    if len(text) <= length:
        return text
    at = _folded(text).find(_folded(query)) if query else -1
    return cut(text, at - (length - len(query)) // 3 if at >= 0 else 0, length)


def best_passage(text: str, question: str, length: int) -> str:
    """At most `length` characters of the text, where most different words of the question are."""
    if len(text) <= length:
        return text
    folded = _folded(text)
    step = max(length // _STEP, 1)
    last = max((len(text) - length) // step + 1, 0)
    worth = [0.0] * (last + 1)
    for word, weight in _telling(question).items():
        windows: set[int] = set()
        for place in _steps(folded, word, step):
            windows.update(range(max(place - _STEP + 1, 0), min(place, last) + 1))
        for number in windows:
            worth[number] += weight
    most = max(worth)
    first = stop = worth.index(most)
    while most and stop < len(worth) and worth[stop] == most:
        stop += 1
    # The middle one of windows that hold the same words has some text before and behind them.
    return cut(text, (first + max(stop - 1, first)) // 2 * step, length)


def cut(text: str, start: int, length: int) -> str:
    """`length` characters from about `start` on, ellipses included, at blanks where there are some."""
    start = max(0, min(start, len(text) - length))
    stop = min(len(text), start + length)
    if start:
        blank = text.find(" ", start, start + length // 8)
        start = blank + 1 if blank >= 0 else start + 1
    if stop < len(text):
        blank = text.rfind(" ", stop - length // 8, stop)
        stop = blank if blank > start else stop - 1
    return (ELLIPSIS if start else "") + text[start:stop].strip() + (ELLIPSIS if stop < len(text) else "")


@lru_cache(8)
def _telling(question: str) -> dict[str, float]:
    """The words of a question with what each is worth: longer words say more."""
    found: dict[str, float] = {}
    for word in _WORD.findall(_folded(question))[:_MOST_WORDS]:
        if _CJK.search(word):
            found.update((word[i : i + 2], 2.0) for i in range(max(len(word) - 1, 1)))
        elif len(word) >= _SHORTEST_WORD:
            found[word] = float(min(len(word), 10))
    return found


def _steps(folded: str, word: str, step: int) -> set[int]:
    """In which steps of the text a word begins."""
    found: set[int] = set()
    at = folded.find(word)
    while at >= 0:
        found.add(at // step)
        at = folded.find(word, (at // step + 1) * step)
    return found


def _folded(text: str) -> str:
    """Case folded, as far as that keeps every character in its place."""
    if text.isascii():
        return text.lower()
    folded = normalize("NFKC", text).casefold()
    return folded if len(folded) == len(text) else text.lower()
