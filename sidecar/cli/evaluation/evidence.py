"""Tells how much of the evidence for a question stands in a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sidecar.cli.evaluation.questions import GROUNDING, Question

ENOUGH = 0.5
"""Share of a message, by its length, that has to stand in a text word for word."""
TELLING = 12
"""Characters from which on a line says something by itself."""

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")


class Found(NamedTuple):
    """What of one question's evidence and answers was found; shares from 0 to 1."""

    evidence: float
    complete: bool
    """True where every group of evidence was."""
    answers: float | None
    """`None` where the question names none."""
    held: int = 0
    """How many pieces of evidence were found."""
    wanted: int = 0
    """How many there are."""


def nothing_in(question: Question) -> Found:
    """What is found where there is nothing to look into."""
    wanted = 1 if question.kind == GROUNDING else len(question.evidence)
    return Found(0.0, complete=False, answers=0.0 if question.answers else None, wanted=wanted)


def normalized(text: str) -> str:
    """The text in one case, one form of its letters, and with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).split()).casefold()


def share_in(message: str, where: str) -> float:
    """Share of the message's sentences and lines, by length, that stand in the normalized text `where`."""
    whole = normalized(message)
    if whole in where:
        return 1.0
    parts = [normalized(part) for part in _SENTENCE_END.split(message)]
    parts = [part for part in parts if len(part) >= TELLING] or [whole]
    return sum(len(part) for part in parts if part in where) / sum(map(len, parts))


def evidence_in(question: Question, texts: Mapping[str, str], where: str) -> Found:
    """What of a question's evidence stands in `where`; `texts` are the messages by their ids."""
    where = normalized(where)
    answers = [normalized(answer).strip(" .\"'") for answer in question.answers]
    held = [answer in where for answer in answers if answer]
    found = _groups(question, texts, where) if question.kind != GROUNDING else held[:1]
    return Found(_mean(found), all(found), _mean(held) if held else None, sum(found), len(found))


def evidence_among(
    question: Question, texts: Mapping[str, str], hits: Sequence[tuple[str | None, str]]
) -> float:
    """Share of the evidence among search hits, each the id of a message and the text that was shown."""
    where = normalized("\n".join(text for _, text in hits))
    if question.kind == GROUNDING:
        return float(normalized(question.answers[0]) in where)
    named = {id for id, _ in hits}
    groups = _groups(question, texts, where)
    return _mean(
        [
            held or any(str(id) in named for id in group)
            for held, group in zip(groups, question.evidence, strict=True)
        ]
    )


def _groups(question: Question, texts: Mapping[str, str], where: str) -> list[bool]:
    return [
        max((share_in(texts[str(id)], where) for id in group), default=0.0) >= ENOUGH
        for group in question.evidence
    ]


def _mean(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else 0.0
