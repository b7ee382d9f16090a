"""Selects the messages that a model wants to read."""

from __future__ import annotations

from typing import NamedTuple

from sidecar.messages.text import same_id
from sidecar.store.search import SearchQuery
from sidecar.tools.contract import ToolSession

MOST = 200
"""Maximum number of messages read for one page; more would not fit."""
LOOK_AHEAD = 40
"""Number of messages after a call that are searched for its results."""


class Selection(NamedTuple):
    """The messages that are wanted: those that meet all conditions."""

    first: int
    last: int
    tool: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def is_range(self) -> bool:
        """Whether every message from `first` to `last` is wanted."""
        return self.tool is None and self.since_ms is None and self.until_ms is None


class Selected(NamedTuple):
    """One page of the selected messages."""

    positions: list[int]
    """In order."""
    more_from: int | None
    """The position at which the next page starts; `None` if this is the last."""


async def select(session: ToolSession, wanted: Selection, begin: int) -> Selected:
    """The next page of wanted messages, from position `begin` on."""
    first, last = max(wanted.first, begin), min(wanted.last, session.head.message_count)
    if wanted.is_range:
        end = min(last, first + MOST - 1)
        return Selected(list(range(first, end + 1)), end + 1 if end < last else None)
    behind = LOOK_AHEAD if wanted.tool is not None else 0  # results of calls in front of this page
    query = SearchQuery(
        text="",
        kind="literal",
        limit=MOST,
        first=max(wanted.first, first - behind),
        last=last,
        tool=wanted.tool,
        since_ms=wanted.since_ms,
        until_ms=wanted.until_ms,
    )
    found = await session.store.search(session.head.ref, query)
    hits = [hit.position for hit in found.hits]
    more_from = hits[-1] + 1 if found.next_cursor is not None and hits else None
    if wanted.tool is not None:
        results = await _results(session, hits, wanted)
        reached = more_from or last + 1
        hits = sorted({*hits, *(position for position in results if position < reached)})
    return Selected([position for position in hits if position >= first], more_from)


async def _results(session: ToolSession, calls: list[int], wanted: Selection) -> list[int]:
    """The messages with results of the tool that do not name it."""
    found: list[int] = []
    read_to = 0
    waiting: set[str] = set()
    for position in calls:
        for message in await session.read(max(position, read_to + 1), position + LOOK_AHEAD):
            if message.position > wanted.last:
                break
            reading = session.dialect.read(message.body)
            waiting |= {same_id(call.id) for call in reading.calls if call.name == wanted.tool}
            if any(same_id(result.call_id) in waiting for result in reading.results):
                found.append(message.position)
            read_to = message.position
    return found
