"""Tells what to look for from what is going on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sidecar.store.search.terms import STOP_WORDS, fold, question, tokens

MOST_PROMPT = 4000
"""Characters of a prompt that are looked at; of a longer one, half of them at either end."""
FEW = 3
"""Telling words up to which a prompt leans on what was said just before."""
MOST_NAMES = 8

_NAME = re.compile(
    r"[\w~]+(?:-+\w+)*(?:[./:@]+[\w-]+)+"
    r"|[A-Za-z]*[a-z][A-Z]\w*|\w+_\w+(?:-+\w+)*|\w*[A-Za-z]\d\w*(?:-+\w+)*|\d{4,}",
    re.ASCII,
)
_LISTED = """
absolutely alright amazing awesome bye cheers continue cool correct definitely excellent exactly fine go good
great ha haha happy hello help hey hi hmm interesting kind lol makes nice no nope ok okay perfect please
proceed really right sense sounds sure thank thanks thing things think thx understand understood wonderful wow
yeah yep yes yup 继续 好的 好吧 谢谢 可以 是的 没错 当然 明白 知道 嗯嗯 不错 很好 请继 不客
客气 你好 再见 哈哈 はい 続け けて ありが がとう お願
"""
_GOING_ON = frozenset(_LISTED.split())
"""Words and pairs of characters that keep a conversation going without saying what it is about."""


class Situation(NamedTuple):
    """What recall is asked for."""

    question: str
    """The text by which the history is searched; empty where nothing is called for."""
    terms: tuple[str, ...]
    """The terms of it, by which passages are compared."""


def situation(prompt: str, newest: Sequence[str]) -> Situation:
    """What a prompt calls for; `newest` are the texts of the last messages, the very last at the end.

    A prompt that only says "yes, go on" calls for nothing. A short one is read with the names, paths and ids
    of what was said just before.
    """
    asked = _shortened(prompt)
    telling = _telling(asked)
    if not telling:
        return Situation("", ())
    if len(telling) <= FEW:
        asked = " ".join((asked, *_names(newest)))
    found = question(asked)
    return Situation(asked, (*found.required, *found.helpful))


def _shortened(prompt: str) -> str:
    if len(prompt) <= MOST_PROMPT:
        return prompt
    return f"{prompt[: MOST_PROMPT // 2]} {prompt[-MOST_PROMPT // 2 :]}"


def _telling(text: str) -> list[str]:
    """The terms of a prompt that say what it is about."""
    words = [word for word in tokens(text) if fold(word) not in _GOING_ON]
    found = question(" ".join(words)).required if words else ()
    return [term for term in found if not _says_nothing(term)]


def _says_nothing(term: str) -> bool:
    return len(term) < 2 or term in STOP_WORDS or term in _GOING_ON


def _names(texts: Iterable[str]) -> list[str]:
    """Names, paths and ids out of some texts, the newest first."""
    found: dict[str, None] = {}
    for text in reversed(list(texts)):
        for name in _NAME.findall(text[:MOST_PROMPT]):
            if len(name) <= 80:
                found.setdefault(name)
            if len(found) >= MOST_NAMES:
                return list(found)
    return list(found)
