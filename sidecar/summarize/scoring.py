"""Says how much a piece of a conversation is worth keeping."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import sqrt

from sidecar.summarize.candidates import REFERENCE, Piece
from sidecar.summarize.cues import WEIGHTS, cues_in

WORD = re.compile(r"[a-z0-9_]+(?:['-][a-z]+)?|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
NUMBER = re.compile(r"\d[\d.,:%]*|[一二三四五六七八九十百千万]+(?=[年月日天个次元])")
NAME = re.compile(r"(?<=[a-z,;:(] )[A-Z][\w'-]+|《[^》]+》|“[^”]{2,}”")
IDENTIFIER = re.compile(
    r"\b[a-z]+(?:_[a-z0-9]+)+\b|\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w+|\b[A-Z]{2,}_[A-Z_]+"
)

ROLE_WORTH = {"user": 2.6, "assistant": 1.2, "system": 1.0, "tool": 0.5}
OTHER_WORTH = 1.4
KIND_WORTH = {"said": 0.0, "call": -0.4, "result": 0.0, "code": -1.2, "earlier": 0.0}
WANTED_WORTH = 1.5
RARE = 2
"""A word that occurs in at most so many pieces is rare."""
LEAST_WORTH = 0.05
HEADING_LOSS = 1.0
SHORT_SENTENCE = 45
"""Characters; a shorter sentence without any detail is an answer such as "Yes, that sounds good"."""
SHORT_LOSS = 1.0


def worths(pieces: Sequence[Piece], instructions: str = "") -> list[float]:
    """What each piece is worth, always positive; words that `instructions` name make a piece worth more."""
    words_of = [WORD.findall(piece.text.lower()) for piece in pieces]
    frequency: Counter[str] = Counter()
    for words in words_of:
        frequency.update(set(words))
    wanted = {word for word in WORD.findall(instructions.lower()) if len(word) > 3 or not word.isascii()}
    return [_worth(piece, words, frequency, wanted) for piece, words in zip(pieces, words_of, strict=True)]


def _worth(piece: Piece, words: list[str], frequency: Counter[str], wanted: set[str]) -> float:
    text = piece.text
    worth = ROLE_WORTH.get(piece.role, OTHER_WORTH) + KIND_WORTH[piece.kind]
    details = _detail_worth(text)
    worth += details + sum(WEIGHTS[cue] for cue in cues_in(words, text))
    if words:
        rare = sum(1 for word in words if frequency[word] <= RARE and not word.isdigit())
        worth += min(1.5, rare / sqrt(len(words)) * 0.6)
    if not wanted.isdisjoint(words):
        worth += WANTED_WORTH
    if piece.place == 0 and piece.kind != "earlier":
        worth += 0.8
    elif piece.is_last:
        worth += 0.3
    if piece.role == "user" and text.endswith(("?", "？")):
        worth += 0.5
    if text.startswith("#") or text.rstrip("*").endswith(":"):
        worth -= HEADING_LOSS
    elif not details and len(text) < (SHORT_SENTENCE if text.isascii() else SHORT_SENTENCE // 3):
        worth -= SHORT_LOSS
    return max(LEAST_WORTH, worth)


def _detail_worth(text: str) -> float:
    """Numbers, addresses, paths, ids, names: what nobody can make up again."""
    details = 0.5 * min(2, len(NAME.findall(text)))
    # Plain words in lower case, most of any text, cannot be part of the others.
    unusual = " ".join([word for word in text.split() if not (word.islower() and word.isalpha())])
    if unusual:
        details += 0.5 * min(3, len(NUMBER.findall(unusual)))
        details += 0.8 * min(2, len(REFERENCE.findall(unusual)))
        details += 0.4 * min(2, len(IDENTIFIER.findall(unusual)))
    return details
