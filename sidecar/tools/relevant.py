"""Answers a question with the messages that fit it best."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct, json

from sidecar.messages.contract import Reading
from sidecar.messages.text import plain_text
from sidecar.recall.passages import rough_tokens
from sidecar.recall.retrieval import HITS, users_word, weighed
from sidecar.store.search import SearchQuery
from sidecar.store.search.excerpt import best_passage, cut
from sidecar.store.stored import StoredMessage
from sidecar.tools.bounding import CLOSING, LIMIT, closed
from sidecar.tools.contract import ToolOutcome, ToolSession
from sidecar.tools.rendering import show, tool_names

MOST = 100
"""Messages that are listed at most."""
PASSAGE = 700
"""Characters of a message that the model is shown, where there is room."""
TEXT = 2000
"""Characters of a message that a program is given."""
ALL_TEXTS = 64_000
"""Characters of all texts together that a program is given."""
LOOK_BACK = 8
"""Messages in front of a result within which its call is looked for."""


class Hit(Struct, rename="camel"):
    """One message that fits, for programs."""

    message_id: str
    turn_id: str
    score: float
    text: str


class Hits(Struct):
    """The messages that fit, best first."""

    hits: list[Hit]


class _Found(NamedTuple):
    """One message that fits, as it is stored."""

    message: StoredMessage
    reading: Reading
    score: float

    def weighed(self, mine: float) -> _Found:
        """The same, worth what it is where the user's word counts `mine` times as much."""
        is_result = bool(self.reading.results)
        return self._replace(score=weighed(self.score, self.message.role, mine, is_result=is_result))


async def most_relevant(session: ToolSession, question: str, limit: int) -> ToolOutcome:
    """The `limit` messages that fit a question best, best first, each with its best passage."""
    found = await _ranked(session, question, min(limit, MOST))
    if not found:
        return ToolOutcome(_nothing(session, question), json.encode(Hits([])))
    length = min(PASSAGE, (LIMIT - CLOSING) // len(found) - 40)
    text_length = min(TEXT, ALL_TEXTS // len(found))
    lines: list[str] = []
    hits: list[Hit] = []
    in_part = 0
    for number, each in enumerate(found, 1):
        line, cut_off, known = await _told(session, question, each, max(length, 80), text_length)
        lines.append(f"{number}. {line}")
        hits.append(known)
        in_part += cut_off
    hint = 'Use a smaller "limit", or mode "turn" with one of the turns above'
    return ToolOutcome(closed(lines, hint, in_part=in_part), json.encode(Hits(hits)))


async def _ranked(session: ToolSession, question: str, limit: int) -> list[_Found]:
    """The messages that fit, ranked as what is recalled: by words, by meaning, by who said it."""
    query = SearchQuery(text=question, kind="words", limit=max(limit, HITS), meaning=True)
    found: list[_Found] = []
    for hit in (await session.find(query)).hits:
        for message in await session.read(hit.position, hit.position):
            found.append(_Found(message, session.dialect.read(message.body), hit.score))
    talked = (each for each in found if not (each.reading.results or each.reading.calls))
    mine = users_word((each.message.role, rough_tokens(plain_text(each.reading))) for each in talked)
    return sorted((each.weighed(mine) for each in found), key=lambda each: -each.score)[:limit]


async def _told(
    session: ToolSession, question: str, found: _Found, length: int, text_length: int
) -> tuple[str, bool, Hit]:
    """One hit for the model, whether that is only a part of the message, and the hit for programs."""
    message, reading, score = found
    names: dict[str, str] = {}
    if any(not result.name for result in reading.results):
        before = await session.read(message.position - LOOK_BACK, message.position - 1)
        names = tool_names(session.dialect.read(each.body) for each in before)
    shown = show(message, reading, names)
    part = shown.shortened(length + shown.head, lambda text, most: best_passage(text, question, most))
    text = best_passage(plain_text(reading), question, text_length)
    known = Hit(message.message_id, message.turn_id, round(score, 4), text)
    return part.text, part is not shown, known


def _nothing(session: ToolSession, question: str) -> str:
    asked = cut(" ".join(question.split()), 0, 100)
    return (
        f'None of the {session.head.message_count} messages of this conversation has a word of "{asked}". '
        'Ask with other words, names or ids that may have been used, or use mode "search" with a part of a '
        'word, or "tail" and "head" to look around.'
    )
