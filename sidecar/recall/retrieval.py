"""Finds the passages of a history that a situation calls for, best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import log, sqrt
from typing import NamedTuple, Protocol

from sidecar.recall.passages import passages, reduced, rough_tokens
from sidecar.recall.situations import Situation
from sidecar.store.search import SearchQuery, SearchResult
from sidecar.store.search.terms import fold

HITS = 60
"""Messages that are looked at for one question."""
USERS_WORD = (1.1, 2.2)
"""What the user said counts so much more than what the user was told, at least and at most."""
DENSITY = 0.4
"""How much shorter passages are preferred: 0 not at all, 1 by what they say for each token."""
FLOOR = 0.05
"""Share of the best score below which nothing is recalled."""
PARTS = 4
"""Passages of one message at most."""
NEIGHBOUR, REPLY = 0.4, 0.8
"""What the message before or behind a hit is worth of the hit itself, where it is short; what the reply to a
question is. One further away is worth as much of its neighbour."""
REACH = 2
"""How many messages away a neighbour may be, for who has room to fill."""
SHORT = 120
"""Rough tokens of a message up to which it is recalled as a neighbour."""
RESULT = 900
"""Characters to which a result of a tool is reduced."""

NAMED = 4
"""Terms of the prompt that are named as the reason for a hit."""
LONG = 2400
"""Characters to which another message is reduced where it is recalled for being new."""

KEPT_FOLDED, LONGEST_KEPT = 512, 40_000
"""Texts that are kept folded for the next question, and the characters of one at most."""

_ASKING = ("?", "？", "吗", "呢")


class Remark(NamedTuple):
    """What a stored message says."""

    position: int
    turn_id: str
    role: str
    timestamp_ms: int
    text: str
    """Visible text, calls and results; text of our own left out."""
    is_result: bool = False
    """Whether it carries results of tools."""
    calls: bool = False
    """Whether it calls tools."""


class RemarkSource(Protocol):
    """The history that is searched."""

    async def search(self, query: SearchQuery) -> SearchResult:
        """The messages that match, best first."""
        ...

    async def remarks(self, positions: Sequence[int]) -> dict[int, Remark]:
        """The messages at these positions; what is not there, or says nothing, is left out."""
        ...


class Passage(NamedTuple):
    """A message, or a part of a long one."""

    remark: Remark
    part: int
    """Which part of the message, from 0."""
    of: int
    """How many parts the message has."""
    text: str
    score: float
    """Higher is better; comparable within one question only."""
    why: str = ""
    """Why it was chosen, for people."""

    @property
    def key(self) -> tuple[int, int]:
        """Position and part, which name the passage."""
        return self.remark.position, self.part


async def retrieve(
    source: RemarkSource, asked: Situation, last: int, hits: int = HITS, reach: int = 1
) -> list[Passage]:
    """The passages up to the position `last` that fit, best first; none where nothing is asked for.

    At most `hits` messages are looked at, and what stands up to `reach` messages from the best third of them.
    """
    if not asked.question or last < 1:
        return []
    found = await source.search(SearchQuery(text=asked.question, limit=hits, last=last, meaning=True))
    if not found.hits:
        return []
    near = {
        p
        for hit in found.hits[: hits // 3]
        for p in range(hit.position - reach, hit.position + reach + 1)
        if 1 <= p <= last
    }
    scores = {hit.position: hit.score for hit in found.hits}
    known = await source.remarks(sorted(near | set(scores)))
    there = [(known[position], score) for position, score in scores.items() if position in known]
    said = [_said(remark, asked.terms) for remark, _ in there]
    worth = _worth(said)
    mine = users_word((r.role, rough_tokens(r.text)) for r, _ in there if not (r.is_result or r.calls))
    ranked: dict[tuple[int, int], Passage] = {}
    for (remark, score), terms in zip(there, said, strict=True):
        score = weighed(score, remark.role, mine, is_result=remark.is_result)
        why = _why(terms, worth)
        for passage in _parts(remark, score, {term: worth[term] for term in terms}):
            ranked[passage.key] = passage._replace(why=why)
    best = max((passage.score for passage in ranked.values()), default=0.0)
    for passage in _neighbours(list(ranked.values()), known, reach):
        known_as = ranked.get(passage.key)
        if known_as is None or (known_as.of == 1 and known_as.score < passage.score):
            ranked[passage.key] = passage
    kept = (passage for passage in ranked.values() if passage.score >= best * FLOOR)
    return sorted(kept, key=lambda passage: (-passage.score, -passage.remark.position, passage.part))


def users_word(said: Iterable[tuple[str, int]]) -> float:
    """How much more the user's word counts, by the roles and lengths of what was said among the hits.

    An assistant that goes on at length says most of it in general. Two who talk alike count alike.
    """
    lengths: dict[str, list[int]] = {"user": [], "assistant": []}
    for role, length in said:
        lengths.setdefault(role, []).append(length)
    least, most = USERS_WORD
    if not (lengths["user"] and lengths["assistant"]):
        return most
    return min(max(sqrt(_mean(lengths["assistant"]) / _mean(lengths["user"])), least), most)


def weighed(score: float, role: str, mine: float, *, is_result: bool) -> float:
    """What a hit is worth by who said it, where `users_word` gave `mine`."""
    return score * mine if role == "user" and not is_result else score


def as_whole(remark: Remark) -> Passage:
    """A message as one passage, reduced where it is long."""
    text = reduced(remark.text, RESULT if remark.is_result else LONG)
    return Passage(remark, 0, 1, text, 0.0, "one of the newest messages, too large to be sent whole")


def _why(terms: Sequence[str], worth: dict[str, float]) -> str:
    """The terms of the prompt that speak most for a hit."""
    telling = sorted(terms, key=lambda term: -worth[term])[:NAMED]
    return f"fits the prompt: {', '.join(telling)}" if telling else "means what the prompt means"


def _mean(lengths: Sequence[int]) -> float:
    return max(sum(lengths) / len(lengths), 1.0)


def _said(remark: Remark, terms: Sequence[str]) -> list[str]:
    """The terms that a message has."""
    text = _folded(remark.text)
    return [term for term in terms if term in text]


def _worth(said: Sequence[Sequence[str]]) -> dict[str, float]:
    """What each term says: those that few of the hits have say more."""
    having = Counter(term for terms in said for term in terms)
    return {term: log(1 + (len(said) - n + 0.5) / (n + 0.5)) for term, n in having.items()}


def _parts(remark: Remark, score: float, worth: dict[str, float]) -> list[Passage]:
    """The passages of a hit, each with its share of the score."""
    if remark.is_result:
        text = reduced(remark.text, RESULT)
        return [Passage(remark, 0, 1, text, _dense(score, text))]
    pieces = passages(remark.text)
    if len(pieces) == 1:
        return [Passage(remark, 0, 1, pieces[0], _dense(score, pieces[0]))]
    said = [_weight(piece, worth) for piece in _folded_passages(remark.text)]
    most = max(said, default=0.0) or 1.0
    order = sorted(range(len(pieces)), key=lambda n: (-said[n], n))[:PARTS]
    return [
        Passage(remark, n, len(pieces), pieces[n], _dense(score * said[n] / most, pieces[n])) for n in order
    ]


def _folded(text: str) -> str:
    return _folded_once(text) if len(text) <= LONGEST_KEPT else fold(text)


_folded_once = lru_cache(KEPT_FOLDED)(fold)


@lru_cache(KEPT_FOLDED)
def _folded_passages(text: str) -> tuple[str, ...]:
    return tuple(map(fold, passages(text)))


def _weight(folded: str, worth: dict[str, float]) -> float:
    return sum(value for term, value in worth.items() if term in folded)


def _dense(score: float, text: str) -> float:
    return score / rough_tokens(text) ** DENSITY


def _neighbours(hits: Sequence[Passage], known: dict[int, Remark], reach: int) -> list[Passage]:
    """Short messages around what was found: the reply, the question before, what came of it."""
    found: list[Passage] = []
    for hit in hits:
        asks = hit.remark.text.rstrip()[-1:] in _ASKING
        for away in range(-reach, reach + 1):
            remark = known.get(hit.remark.position + away) if away else None
            if remark is not None and _is_short(remark.text):
                share = REPLY if asks and away == 1 else NEIGHBOUR ** abs(away)
                why = f"next to message {hit.remark.position}, which fits the prompt"
                found.append(Passage(remark, 0, 1, remark.text, hit.score * share, why))
    return sorted(found, key=lambda passage: -passage.score)


def _is_short(text: str) -> bool:
    return len(text) <= 4 * SHORT and rough_tokens(text) <= SHORT
