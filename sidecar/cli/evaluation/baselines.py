"""Simple ways to choose a context, to compare engines with: the newest messages, and a full-text search."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from sidecar.cli.evaluation.questions import RecordedMessage
from sidecar.cli.evaluation.subjects import Context, FoundPassage
from sidecar.recall.passages import passages
from sidecar.store.indexing.stop_words import STOP_WORDS
from sidecar.store.indexing.terms import is_cjk, pairs

TAIL = 0.25
"""Share of the budget for the newest messages where the rest is for what a search finds."""
OVERHEAD = 4
"""Tokens of a message beside its text."""
LINE = 12
"""Tokens that the place of a passage takes, about."""
RANKED = 400
MOST_TERMS = 64
HEADING = "[From earlier in this conversation]"
_RUN = re.compile(r"\w+")


class _Piece(NamedTuple):
    """A passage of a message."""

    unit: int
    message: RecordedMessage
    text: str
    tokens: int


class _Told:
    """What was told of one session."""

    def __init__(self) -> None:
        self.units: list[list[RecordedMessage]] = []
        """Messages, each call together with its results."""
        self.pieces: list[_Piece] = []
        self.index = sqlite3.connect(":memory:")
        self.index.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize = 'porter unicode61')")


class Baseline:
    """The newest messages; with `searching`, a quarter of them and what SQLite's full-text search finds.

    `neighbours` are the passages on either side of a hit that are taken with it. No system message is
    kept by force, no answer stable, nothing on disk.
    """

    def __init__(self, count: Callable[[str], int], *, searching: bool, neighbours: int = 0) -> None:
        self._count = count
        self._searching = searching
        self._neighbours = neighbours
        self._sessions: dict[str, _Told] = {}

    async def tell(self, session_id: str, message: RecordedMessage) -> None:
        """See `Subject`."""
        told = self._sessions.setdefault(session_id, _Told())
        if message.role == "tool" and told.units and told.units[-1][0].tool_calls:
            told.units[-1].append(message)
        else:
            told.units.append([message])
        for text in passages(message.text) if self._searching else ():
            told.index.execute(
                "INSERT INTO said (rowid, text) VALUES (?, ?)", (len(told.pieces), _paired(text))
            )
            told.pieces.append(_Piece(len(told.units) - 1, message, text, self._count(text) + LINE))

    async def settle(self) -> None:
        """See `Subject`; nothing is done behind."""

    async def context(self, session_id: str, budget: int, prompt: str | None) -> Context:
        """See `Subject`."""
        told = self._sessions[session_id]
        room = budget - self._count(prompt or "") - 2 * OVERHEAD
        first, left = self._tail(told, int(room * TAIL) if self._searching else room)
        left += room - int(room * TAIL) if self._searching else 0
        bodies = [message.encoded() for unit in told.units[first:] for message in unit]
        if not told.units[first:] or told.units[first][0].role != "user":
            bodies.insert(0, _said("[Earlier messages are left out]"))
        recalled = self._recalled(told, prompt or "", left - self._count(HEADING) - 2 * OVERHEAD, first)
        if recalled:
            bodies.append(_said("\n".join((HEADING, *recalled))))
        return Context(bodies)

    async def search(self, session_id: str, question: str, limit: int) -> Sequence[FoundPassage] | None:
        """See `Subject`."""
        if not self._searching:
            return None
        told = self._sessions[session_id]
        best: dict[str, FoundPassage] = {}
        for number in _ranked(told, question):
            piece = told.pieces[number]
            best.setdefault(piece.message.name, FoundPassage(piece.message.name, piece.text))
        return list(best.values())[:limit]

    def _tail(self, told: _Told, room: int) -> tuple[int, int]:
        """Where the newest units begin that fit, and the room that is left."""
        first = len(told.units)
        while first:
            tokens = sum(self._count(message.text) + OVERHEAD for message in told.units[first - 1])
            if tokens > room:
                break
            room -= tokens
            first -= 1
        return first, room

    def _recalled(self, told: _Told, prompt: str, room: int, first: int) -> list[str]:
        chosen: set[int] = set()
        for number in _ranked(told, prompt) if self._searching else ():
            for near in range(number - self._neighbours, number + self._neighbours + 1):
                piece = told.pieces[near] if 0 <= near < len(told.pieces) else None
                if piece and near not in chosen and piece.unit < first and piece.tokens <= room:
                    chosen.add(near)
                    room -= piece.tokens
        pieces = [told.pieces[number] for number in sorted(chosen)]
        return [
            f"({piece.message.ts or piece.message.name}) {piece.message.role}: {piece.text}"
            for piece in pieces
        ]


BASELINES = ("recency", "fts5", "fts5+neighbours")


def baselines(count: Callable[[str], int]) -> dict[str, Callable[[], Baseline]]:
    """What engines are compared with, by name."""
    recency, fts5, around = BASELINES
    return {
        recency: lambda: Baseline(count, searching=False),
        fts5: lambda: Baseline(count, searching=True),
        around: lambda: Baseline(count, searching=True, neighbours=1),
    }


def _ranked(told: _Told, question: str) -> list[int]:
    """Numbers of passages with a word of the question, best first."""
    words = list(dict.fromkeys(_RUN.findall(_paired(question).lower())))
    telling = [word for word in words if word not in STOP_WORDS] or words
    if not telling:
        return []
    wanted = " OR ".join(f'"{word}"' for word in telling[:MOST_TERMS])
    query = "SELECT rowid FROM said WHERE said MATCH ? ORDER BY bm25(said) LIMIT ?"
    return [row for (row,) in told.index.execute(query, (wanted, RANKED))]


def _paired(text: str) -> str:
    """The text with runs of Han, kana and hangul as pairs of characters."""
    if text.isascii():
        return text
    return _RUN.sub(lambda run: " ".join(pairs(run[0])) if is_cjk(run[0]) else run[0], text)


def _said(text: str) -> bytes:
    return msgspec.json.encode({"role": "user", "content": text})
