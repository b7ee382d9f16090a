"""Gathers the messages that searches find, within a room, best first."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from sidecar.messages.text import searchable
from sidecar.store.search import SearchError, SearchKind, SearchQuery
from sidecar.store.search.excerpt import Passage, passage_for
from sidecar.tools.contract import ToolSession

FOUND = 8
"""Messages that are taken of one search."""
IN_A_ROW = 12
"""Messages that are taken of a range."""
PASSAGE = 900
"""Characters of a message that the model is shown."""
WHOLE = 200_000
"""Characters of a message in which names and numbers of a claim are looked for."""


class Wanted(Struct, frozen=True):
    """One search, or a range of messages to read."""

    kind: SearchKind | str
    """`words`, `literal`, `regex` or `range`."""
    text: str
    first: int = 0
    last: int = 0


class Piece(NamedTuple):
    """One message that was found."""

    position: int
    message_id: str
    turn_id: str
    role: str
    timestamp_ms: int
    text: str
    """What the model is shown of it."""
    whole: str
    """All of it."""


class Bounds(NamedTuple):
    """Where it may be looked."""

    first: int
    last: int
    since_ms: int | None = None
    until_ms: int | None = None


class Evidence:
    """The messages that were found so far, by position."""

    def __init__(self, session: ToolSession, bounds: Bounds, question: str) -> None:
        self._session = session
        self._bounds = bounds
        self._question = question
        self.pieces: dict[int, Piece] = {}

    async def look(self, wanted: Wanted) -> int | None:
        """Take in what a search finds; how many messages that are, `None` where it is no search."""
        kind = _search_kind(wanted)
        try:
            positions = await self._positions(wanted, kind)
            said = f"{wanted.text} {self._question}" if kind == "words" else wanted.text
            passage = passage_for(kind, said)
        except SearchError:
            return None
        for position in positions:
            if position not in self.pieces:
                await self._take(position, passage)
        return len(positions)

    async def _positions(self, wanted: Wanted, kind: SearchKind) -> list[int]:
        bounds = self._bounds
        if wanted.kind == "range":
            first = max(wanted.first, bounds.first)
            last = min(wanted.last, bounds.last, first + IN_A_ROW - 1)
            return list(range(first, last + 1))
        query = SearchQuery(
            text=wanted.text,
            kind=kind,
            limit=FOUND,
            first=bounds.first,
            last=bounds.last,
            since_ms=bounds.since_ms,
            until_ms=bounds.until_ms,
            newest_first=True,
        )
        return [
            hit.position for hit in (await self._session.store.search(self._session.head.ref, query)).hits
        ]

    async def _take(self, position: int, passage: Passage) -> None:
        for stored in await self._session.read(position, position):
            if not self._is_in_time(stored.timestamp_ms):
                continue
            whole = searchable(self._session.dialect, stored.body).text[:WHOLE]
            self.pieces[position] = Piece(
                position,
                stored.message_id,
                stored.turn_id,
                stored.role,
                stored.timestamp_ms,
                passage(whole, PASSAGE),
                whole,
            )

    def _is_in_time(self, at_ms: int) -> bool:
        since, until = self._bounds.since_ms, self._bounds.until_ms
        return (since is None or at_ms >= since) and (until is None or at_ms <= until)


def _search_kind(wanted: Wanted) -> SearchKind:
    """How it is searched, and what matters of the messages; a range is read for the words of the question."""
    match wanted.kind:
        case "literal":
            return "literal"
        case "regex":
            return "regex"
        case _:
            return "words"
