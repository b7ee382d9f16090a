"""Keeps the values with which an agent works: paths, commands, and ids that tools gave."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from math import log
from typing import NamedTuple, TypeVar, cast

from msgspec import DecodeError, json

from sidecar.messages.contract import Reading
from sidecar.store.search.terms import expand, tokens

_K = TypeVar("_K")

LONGEST_VALUE = 160
"""Characters of a value that is still kept."""
LONGEST_RESULT = 8000
"""Characters of a result that are looked at for ids."""
KEPT_TEXTS = 4096
"""Texts whose ids are kept for the next time."""
FADES = 0.99
"""What a use is worth after each further call: values in use come before those of long ago."""
BESIDE = 3
"""How far from a value that was passed to a tool, in the result that gave it, ids count as used as well."""
NAMED = 2.0
"""How many uses it is worth to be named in every term that is asked for, about, where each is rare."""
KEPT_VALUES = 16_384
"""Values whose terms are kept for the next time."""
ARGUMENTS_SHARE = 0.7
"""Share of the room that goes to what was passed to tools where their results have ids too."""

_ID = re.compile(
    r"(?<![\w/.@-])(?:"
    r"\d{4}-\d\d-\d\d(?!\w)"
    r"|(?=[\w@.+-]*\d)(?=[\w@.+-]*[A-Za-z_])[A-Za-z0-9][\w@.+-]{3,39}"
    r"|[\w.+-]+@[\w-]+\.[\w.]+"
    r"|~?[\w.@-]*/[\w./@-]{2,}"
    r"|[\w-]+\.(?:[a-z]{1,4}|json|yaml|toml|html)\b"
    r"|\d{5,12}(?![\w.])"
    r")"
)
_CANDIDATE = re.compile(r"[\w@./~+-]{3,}")
"""What an id may be part of; looking for ids in words alone takes most of the time."""
_NOISE = re.compile(r"(?i)^(?:\d+(?:px|ms|kb|mb|s|th|st|nd|rd|x)|v?\d+(?:\.\d+)+|[a-f0-9]{32,}|utf-?8)$")


class Values(NamedTuple):
    """Values in the order of their worth."""

    passed: Sequence[tuple[str, str]]
    """Tool and value of what was passed to tools."""
    found: Sequence[str]
    """Ids out of results."""

    def lines(self, room: int, count: Callable[[str], int]) -> list[str]:
        """One line for each tool with the values passed to it, and one with ids out of results.

        At most `room` tokens.
        """
        share = room if not self.found else int(room * ARGUMENTS_SHARE)
        kept, spent = _first(self.passed, share, lambda pair: count(pair[1]) + 2)
        listed, _ = _first(self.found, room - spent, lambda name: count(name) + 2)
        by_tool: dict[str, list[str]] = {}
        for tool, value in kept:
            by_tool.setdefault(tool, []).append(value)
        lines = [f"{tool}: {', '.join(values)}" for tool, values in by_tool.items()]
        return [*lines, f"in results: {', '.join(listed)}"] if listed else lines


class WorkingSet:
    """The values of some messages, taken in from the oldest to the newest."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str, str], tuple[float, int]] = {}
        """By tool and value: what its uses were worth at the last one, and at which call that was."""
        self._found: dict[str, tuple[float, int]] = {}
        self._given: dict[str, Sequence[str]] = {}
        """The ids of the result in which an id stood last."""
        self._calls = 0

    def add(self, reading: Reading) -> None:
        """Take in a message; what is talked of counts where a tool gave it."""
        for call in reading.calls:
            self._calls += 1
            for value in dict.fromkeys(_values(call.arguments)):
                self._count(self._uses, (call.name, value))
                self._count_beside(value)
        for name in _ids(reading.said):
            if name in self._found:
                self._count(self._found, name)
        for text in reading.result_texts:
            names = [name for name in _ids(text) if not _NOISE.match(name)]
            for name in reversed(names):
                self._count(self._found, name)
                self._given[name] = names

    def unseen(self, visible: str = "", asked: Sequence[str] = ()) -> Values:
        """What does not stand in `visible`: first what is in use, and named like the terms in `asked`."""
        uses = self._ordered(self._uses, {pair: pair[1] for pair in self._uses}, asked)
        given = {value for _, value in self._uses}
        names = self._ordered(self._found, {name: name for name in self._found}, asked)
        return Values(
            [pair for pair in uses if pair[1] not in visible],
            [name for name in names if name not in visible and name not in given],
        )

    def _count_beside(self, value: str) -> None:
        """Who takes one of a list goes on with the others: they count, too."""
        names = self._given.get(value)
        if names is None:
            return
        at = names.index(value)
        for name in (*names[max(at - BESIDE, 0) : at], *names[at + 1 : at + 1 + BESIDE]):
            self._count(self._found, name)

    def _count(self, uses: dict[_K, tuple[float, int]], key: _K) -> None:
        worth, at = uses.pop(key, (0.0, self._calls))
        uses[key] = (worth * FADES ** (self._calls - at) + 1, self._calls)

    def _ordered(
        self, uses: dict[_K, tuple[float, int]], values: dict[_K, str], asked: Sequence[str]
    ) -> list[_K]:
        worth = {key: value * FADES ** (self._calls - at) for key, (value, at) in uses.items()}
        for key, fit in _fits(values, frozenset(asked)).items():
            worth[key] += fit
        newest_first = list(reversed(worth))
        return sorted(newest_first, key=worth.__getitem__, reverse=True)


def take_note(reading: Reading) -> None:
    """Look for ids ahead of the time when they are asked for, which takes longest of all."""
    _ids(reading.said)
    for text in reading.result_texts:
        _ids(text)


@lru_cache(KEPT_TEXTS)
def _ids(text: str) -> tuple[str, ...]:
    """What looks like an id, a path or a date in the beginning of a text, each once."""
    candidates = _CANDIDATE.findall(text[:LONGEST_RESULT])
    telling = " ".join(each for each in candidates if not each.rstrip(".").isalpha())
    return tuple(dict.fromkeys(_ID.findall(telling)))


def _fits(values: dict[_K, str], asked: frozenset[str]) -> dict[_K, float]:
    """What values are worth for having terms that are asked for: more for those that few values have."""
    having = (
        {key: found for key, value in values.items() if (found := asked & _terms(value))} if asked else {}
    )
    times = Counter(term for terms in having.values() for term in terms)
    rare = {term: log(1 + (len(values) - n + 0.5) / (n + 0.5)) for term, n in times.items()}
    return {key: NAMED * sum(rare[term] for term in terms) / len(asked) for key, terms in having.items()}


@lru_cache(KEPT_VALUES)
def _terms(value: str) -> frozenset[str]:
    return frozenset(term for token in tokens(value) for term in expand(token).terms)


def _first(items: Iterable[_K], room: int, cost: Callable[[_K], int]) -> tuple[list[_K], int]:
    """The first items that fit, and what they take; one that is too large is passed over."""
    kept: list[_K] = []
    spent = 0
    for item in items:
        if room - spent < 3:
            break
        size = cost(item)
        if size <= room - spent:
            kept.append(item)
            spent += size
    return kept, spent


def _values(arguments: str) -> Iterator[str]:
    """The short texts of a call's arguments."""
    try:
        yield from _texts(json.decode(arguments), 0)
    except (DecodeError, RecursionError):
        if len(arguments) <= LONGEST_VALUE:
            yield arguments


def _texts(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if 2 < len(value) <= LONGEST_VALUE and "\n" not in value:
            yield value
    elif isinstance(value, dict) and depth < 8:
        for member in cast("dict[str, object]", value).values():
            yield from _texts(member, depth + 1)
    elif isinstance(value, list) and depth < 8:
        for member in cast("list[object]", value):
            yield from _texts(member, depth + 1)
