"""What an evaluation puts its questions to: a sidecar, or something simpler to compare it with."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from sidecar.cli.lab.questions import RecordedMessage
from sidecar.client.errors import InvalidParams
from sidecar.client.sidecar_client import SidecarClient
from sidecar.protocol.times import parse_rfc3339
from sidecar.recall.passages import passages
from sidecar.store.search.terms import STOP_WORDS, is_cjk, pairs

SEARCH_TOOL = "context_search"
LOOKED_S = 0.02
"""Seconds after which it is looked again whether vectors are made."""


VECTORS_S = 600.0
"""Longest wait for vectors of what was told: they are made behind everything else."""
_WAITING = re.compile(r"by words and meaning, (\d[\d,]*) messages? without a vector")


BASELINES = ("recency", "fts5", "fts5+neighbours")
"""What engines can be compared with."""
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


class Context(NamedTuple):
    """What the model would see."""

    bodies: Sequence[bytes]
    """The messages, each as JSON."""
    before: str = ""
    """What is added to the system prompt."""
    behind: str = ""
    """What is appended to the user's message."""


class FoundPassage(NamedTuple):
    """One hit of a search."""

    message_id: str | None
    text: str


class Subject(Protocol):
    """Something that is told messages, and says what the model should see of them."""

    async def tell(self, session_id: str, message: RecordedMessage) -> None:
        """Take in the next message."""
        ...

    async def context(self, session_id: str, budget: int, prompt: str | None) -> Context:
        """What the model sees in at most `budget` tokens.

        Raises:
            ContextOverflow: not even the smallest valid context fits.
        """
        ...

    async def search(self, session_id: str, question: str, limit: int) -> Sequence[FoundPassage] | None:
        """The passages that fit best, best first; `None` where there is no search."""
        ...

    async def settle(self) -> None:
        """Be ready for questions about everything that was told."""
        ...


class _Hits(msgspec.Struct, frozen=True):
    """The part of the tool's structured content that is looked at."""

    class Hit(msgspec.Struct, frozen=True, rename="camel"):
        """One hit."""

        message_id: str | None = None
        text: str = ""

    hits: Sequence[Hit] = ()


class VectorsMissing(Exception):
    """Raised where search by meaning is to be measured, and cannot be used."""


class SidecarSubject:
    """An engine behind a sidecar, over the wire; with `by_meaning` one that is to have all vectors."""

    def __init__(self, client: SidecarClient, *, by_meaning: bool = False) -> None:
        self._client = client
        self._by_meaning = by_meaning
        self._settled = False
        """Whether nothing was told since the last question."""
        self._searchable: dict[str, bool] = {}

    async def tell(self, session_id: str, message: RecordedMessage) -> None:
        """Ingest a message, with its time where that is RFC 3339."""
        self._settled = False
        await self._client.ingest(
            session_id,
            message.encoded(),
            message_id=message.name,
            timestamp=message.ts if message.ts and _is_time(message.ts) else None,
        )

    async def context(self, session_id: str, budget: int, prompt: str | None) -> Context:
        """See `Subject`."""
        answer = await self._client.assemble(session_id, budget, prompt=prompt)
        return Context(answer.bodies, answer.system_prompt_addition or "", answer.user_message_append or "")

    async def search(self, session_id: str, question: str, limit: int) -> Sequence[FoundPassage] | None:
        """See `Subject`."""
        if session_id not in self._searchable:
            tools = await self._client.tools(session_id)
            self._searchable[session_id] = any(tool.name == SEARCH_TOOL for tool in tools)
        if not self._searchable[session_id]:
            return None
        arguments = {"mode": "relevant", "query": question, "limit": limit}
        content = (await self._client.call_tool(session_id, SEARCH_TOOL, arguments)).structured_content
        hits = msgspec.json.decode(bytes(content), type=_Hits).hits if content else ()
        return [FoundPassage(hit.message_id, hit.text) for hit in hits]

    async def settle(self) -> None:
        """Wait for vectors of everything that was told, where search by meaning is to be measured.

        Raises:
            VectorsMissing: the sidecar searches by words only, or takes too long.
        """
        if not self._by_meaning or self._settled:
            return
        deadline = time.monotonic() + VECTORS_S
        while True:
            checks = (await self._client.doctor()).checks
            told = next(check.message for check in checks if check.name == "search")
            waiting = _WAITING.match(told)
            if waiting is None:
                raise VectorsMissing(f"search by meaning cannot be measured: {told}")
            if waiting[1] == "0":
                self._settled = True
                return
            if time.monotonic() > deadline:
                raise VectorsMissing(f"{waiting[1]} messages still wait for their vectors")
            await asyncio.sleep(LOOKED_S)


def _is_time(text: str) -> bool:
    try:
        parse_rfc3339(text)
    except (ValueError, InvalidParams):
        return False
    return True


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
