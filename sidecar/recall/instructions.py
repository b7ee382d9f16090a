"""Recognises what a user said once to hold from then on: instructions, preferences, corrections."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from sidecar.recall.retrieval import Remark, RemarkSource
from sidecar.store.search import SearchQuery
from sidecar.store.search.terms import document_terms, question

CANDIDATES = 80
"""Messages with a cue that are looked at."""
FEW = 20
"""Messages with a phrase of stop words alone that are looked at."""
WHOLE = 400
"""Characters of a message up to which it is kept whole; of a longer one the sentence that has the cue."""

_CUE_WORDS = (
    "always never prefer preference preferred remember ensure avoid henceforth future forward "
    "instead remind 以后 总是 永远 每次 记住 务必 不要 别再 必须 喜欢 偏好 今后 必ず いつも"
)
_CUE_PHRASE = "from now on"
_RULE = re.compile(
    r"(?i)(?:^|[.!?,;:]\s+|\bplease\s+|\byou\s+(?:should|must|can)\s+|\band\s+|\bto\s+)(?:always|never)\b"
    r"|\bfrom now on\b|\b(?:going|moving) forward\b|\bhenceforth\b|\bin (?:the )?future,"
    r"|\b(?:whenever|every time|each time) (?:I|you|we)\b"
    r"|^(?:don't|do not|stop|make sure|be sure|ensure|avoid)\b"
    r"|\b(?:please )?(?:remember|keep in mind) (?:that|to)\b"
    r"|以后(?:请|都|要|不要|别|每次|回答|用)|从现在(?:起|开始)|请(?:你)?(?:总是|永远|每次|始终)|每次都?(?:要|请)"
    r"|(?:请|要)记住|务必|(?:请)?(?:不要|别)再|今後|必ず|いつも.{0,20}(?:して|ください)"
)
_PREFERENCE = re.compile(
    r"(?i)\bI(?:'d|\s+would)?(?:\s+(?:really|much|also|always|generally|usually|strongly))?\s+prefer\b"
    r"|\bmy preference\b|\bI (?:always|never) (?:want|like|use|eat|drink|need)\b"
    r"|\bI (?:like|want|need) (?:you|your)\b"
    r"|更喜欢|偏好|我(?:不喜欢|讨厌|希望你)"
)
_CORRECTION = re.compile(
    r"(?i)^(?:no[,.! ]|actually[, ]|wrong\b|that's (?:not|wrong)|not that\b)"
    r"|\binstead of\b|\bI meant\b|^(?:不对|不是|错了)"
)
_CLASSES = (_RULE, _PREFERENCE, _CORRECTION)
_ONE_S_OWN = re.compile(r"(?i)\b(?:I|me|my|we|our|us)\b(?!'d)")
"""Where this comes before the cue of a rule, somebody tells of himself or herself."""
_SENTENCE = re.compile(r"(?<=[.!?\n])\s+|(?<=[。！？])")


class Instruction(NamedTuple):
    """What a user wants to hold."""

    rank: int
    """0 for a rule, 1 for a preference, 2 for a correction."""
    text: str
    remark: Remark


def instruction(remark: Remark) -> Instruction | None:
    """What of a user's message is to hold from then on, `None` where nothing is."""
    if remark.role != "user" or remark.is_result:
        return None
    for rank, cues in enumerate(_CLASSES):
        for sentence in _SENTENCE.split(remark.text):
            cue = cues.search(sentence.strip())
            if cue and not (cues is _RULE and _ONE_S_OWN.search(sentence.strip(), 0, cue.start())):
                text = remark.text if len(remark.text) <= WHOLE else sentence
                return Instruction(rank, " ".join(text.split())[: 2 * WHOLE], remark)
    return None


async def standing(source: RemarkSource, last: int) -> Sequence[Instruction]:
    """What users said up to the position `last` that is to hold: rules, then preferences, newest first."""
    words = SearchQuery(text=_CUE_WORDS, roles=("user",), limit=CANDIDATES, last=last)
    phrase = SearchQuery(
        text=_CUE_PHRASE, kind="literal", roles=("user",), limit=FEW, last=last, newest_first=True
    )
    positions = {hit.position for query in (words, phrase) for hit in (await source.search(query)).hits}
    return _in_order((await source.remarks(sorted(positions))).values(), ())


def standing_since(remarks: Iterable[Remark], before: Sequence[Instruction]) -> Sequence[Instruction]:
    """The same with what some newer messages add, where all `before` them are known."""
    return _in_order(filter(_has_cue, remarks), before)


def _has_cue(remark: Remark) -> bool:
    """Whether a search for what instructions begin with would find a message."""
    if remark.role != "user" or remark.is_result:
        return False
    return _CUE_PHRASE in remark.text.casefold() or not _cues().isdisjoint(document_terms(remark.text).counts)


@cache
def _cues() -> frozenset[str]:
    asked = question(_CUE_WORDS)
    return frozenset((*asked.required, *asked.helpful))


def _in_order(remarks: Iterable[Remark], before: Sequence[Instruction]) -> Sequence[Instruction]:
    """The instructions in some messages, the oldest first, with older ones; of the same text the newest."""
    found = {each.text.casefold(): each for each in before}
    for remark in remarks:
        known = instruction(remark)
        if known is not None:
            found[known.text.casefold()] = known
    return sorted(found.values(), key=lambda each: (each.rank, -each.remark.position))
