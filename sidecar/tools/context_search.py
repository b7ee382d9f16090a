"""The tool `context_search`: reads what was said in the session, whatever the model still sees of it."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from sidecar.store.search import SearchQuery
from sidecar.store.search.excerpt import around, cut
from sidecar.tools.arguments import Count, Number, read_arguments, whole
from sidecar.tools.bounding import bounded
from sidecar.tools.context_search_schema import DESCRIPTION, INPUT_SCHEMA
from sidecar.tools.contract import ArgumentError, ToolFailed, ToolOutcome, ToolSession
from sidecar.tools.relevant import most_relevant
from sidecar.tools.rendering import Shown, show, tool_names

CONTEXT = 2
"""Messages around a match, unless the model asks for others."""
END = 10
"""Messages at either end, unless the model asks for others."""
MATCHES = 100
"""Matches that are looked at, the newest ones."""
MOST = 400
"""Messages that one answer can show at most; more would not fit its bound."""
LOOK_BACK = 40
"""Messages in front of a result within which its call is looked for."""

_NUMBERED = re.compile(r"t([1-9][0-9]{0,9})")

Query = Annotated[str, Meta(min_length=1)]


class SearchArguments(Struct, rename="camel"):
    """Arguments of the tool."""

    mode: Literal["search", "tail", "head", "turn", "relevant"]
    query: Query | None = None
    before: Count | None = None
    after: Count | None = None
    last: Number | None = None
    first: Number | None = None
    turn_id: Query | None = None
    limit: Number | None = None


class ContextSearch:
    """Finds and shows stored messages."""

    name: ClassVar[str] = "context_search"
    description: ClassVar[str] = DESCRIPTION
    input_schema: ClassVar[bytes] = msgspec.json.encode(INPUT_SCHEMA)

    async def call(self, session: ToolSession, arguments: bytes) -> ToolOutcome:
        """As `AgentTool.call`."""
        given = read_arguments(arguments, SearchArguments)
        match given.mode:
            case "search":
                return ToolOutcome(await _search(session, _needed(given.query, "query", given.mode), given))
            case "relevant":
                query = _needed(given.query, "query", given.mode)
                return await most_relevant(session, query, whole(given.limit, END))
            case "turn":
                turn_id = _needed(given.turn_id, "turnId", given.mode)
                return ToolOutcome(await _turn(session, turn_id, given))
            case "tail":
                return ToolOutcome(await _tail(session, whole(given.last, END)))
            case "head":
                return ToolOutcome(await _head(session, whole(given.first, END)))


def _needed(value: str | None, name: str, mode: str) -> str:
    if value is None or not value.strip():
        example = 'an id such as "t7"' if name == "turnId" else "the text to find"
        raise ArgumentError(f'mode "{mode}" needs it: {example}', name)
    return value


async def _search(session: ToolSession, query: str, given: SearchArguments) -> str:
    before, after = whole(given.before, CONTEXT), whole(given.after, CONTEXT)
    result = await session.store.search(
        session.head.ref, SearchQuery(text=query, kind="literal", limit=MATCHES, newest_first=True)
    )
    hits = [hit.position for hit in result.hits]
    if not hits:
        return _nothing_found(session, query, complete=result.complete)
    count = session.head.message_count
    wanted = dict.fromkeys(hits)
    for distance in range(1, min(max(before, after), MOST) + 1):
        if len(wanted) >= MOST:
            break
        wanted.update((hit - distance, None) for hit in hits if distance <= before and hit > distance)
        wanted.update((hit + distance, None) for hit in hits if distance <= after and hit + distance <= count)
    order = list(wanted)[:MOST]
    more = ""
    if result.next_cursor is not None or not result.complete:
        more = f"the {len(hits)} newest matches are looked at, there are older ones"
    return bounded(
        await _shown(session, order),
        count,
        partial(_around, query),
        first_wanted=order,
        more=more,
        hint='Use a longer query, smaller "before" and "after", or mode "turn" for a whole turn',
    )


def _around(query: str, text: str, length: int) -> str:
    return around(text, query, length)


def _nothing_found(session: ToolSession, query: str, *, complete: bool) -> str:
    asked = cut(" ".join(query.split()), 0, 100)
    where = f"the {session.head.message_count} messages of this conversation"
    searched = f"Nothing in {where} contains" if complete else f"Not all of {where} could be searched for"
    return (
        f'{searched} "{asked}". The search is for these very characters in a row: try one telling word of '
        'it, another spelling or form, or mode "relevant" with a question; mode "tail" shows the newest '
        "messages."
    )


async def _tail(session: ToolSession, last: int) -> str:
    count = session.head.message_count
    first = max(count - min(last, MOST) + 1, 1)
    order = list(range(count, first - 1, -1))
    more = f"the newest {len(order)} are looked at" if len(order) < min(last, count) else ""
    hint = 'Use mode "search" or "relevant" to find what is left out, or a smaller "last"'
    return await _page(session, order, more, hint)


async def _head(session: ToolSession, first: int) -> str:
    count = session.head.message_count
    order = list(range(1, min(first, MOST, count) + 1))
    more = f"the oldest {len(order)} are looked at" if len(order) < min(first, count) else ""
    hint = 'Use mode "search" or "relevant" to find what is left out, or a smaller "first"'
    return await _page(session, order, more, hint)


async def _turn(session: ToolSession, turn_id: str, given: SearchArguments) -> str:
    number = await _turn_number(session, turn_id.strip())
    begin, end = await _turn_range(session, number, number)
    first, last = await _turn_range(
        session, max(number - whole(given.before, 0), 1), number + whole(given.after, 0)
    )
    inside = list(range(begin, min(end, begin + MOST - 1) + 1))
    around_it = [p for d in range(1, MOST) for p in (begin - d, end + d) if first <= p <= last]
    order = (inside + around_it)[:MOST]
    more = f"{len(order)} of {last - first + 1} messages are looked at" if len(order) <= last - first else ""
    hint = 'Use mode "search" with words of what is left out, or ask for fewer turns'
    return await _page(session, order, more, hint)


async def _page(session: ToolSession, order: list[int], more: str, hint: str) -> str:
    shown = await _shown(session, order)
    return bounded(shown, session.head.message_count, _from_start, first_wanted=order, more=more, hint=hint)


def _from_start(text: str, length: int) -> str:
    return cut(text, 0, length)


async def _turn_number(session: ToolSession, turn_id: str) -> int:
    """The number of a turn; hosts may have given it another name.

    Raises:
        ToolFailed: there is no such turn.
    """
    ref = session.head.ref
    numbered = _NUMBERED.fullmatch(turn_id)
    if numbered is not None:
        start = await session.store.turn_start(ref, int(numbered[1]))
        there = await session.read(start, start) if start else ()
        if there and there[0].turn_id == turn_id:
            return there[0].turn
    query = SearchQuery(text="", kind="literal", turn_id=turn_id, limit=1)
    for hit in (await session.store.search(ref, query)).hits:
        for message in await session.read(hit.position, hit.position):
            return message.turn
    count = session.head.message_count
    newest = await session.read(count, count)
    last = newest[0].turn_id if newest else "t1"
    raise ToolFailed(
        f"There is no turn {turn_id[:100]}; the last one is {last}. Turn ids stand in the activity log and "
        'in front of every message that mode "search" or "tail" shows.'
    )


async def _turn_range(session: ToolSession, first: int, last: int) -> tuple[int, int]:
    """The positions of the first and last message of some turns."""
    ref, head = session.head.ref, session.head
    start = await session.store.turn_start(ref, first)
    behind = await session.store.turn_start(ref, last + 1) if last < head.turn_count else None
    return start or 1, behind - 1 if behind else head.message_count


async def _shown(session: ToolSession, positions: list[int]) -> list[Shown]:
    """The messages at these positions as text, in order."""
    if not positions:
        return []
    wanted = sorted(positions)
    shown: list[Shown] = []
    begin = 0
    for index in range(1, len(wanted) + 1):
        if index < len(wanted) and wanted[index] - wanted[index - 1] <= LOOK_BACK:
            continue
        first, last = wanted[begin], wanted[index - 1]
        read = session.dialect.read
        stored = await session.read(first - LOOK_BACK, last)
        readings = [read(message.body) for message in stored]
        tools = tool_names(readings)
        inside = set(wanted[begin:index])
        shown += [
            show(message, reading, tools)
            for message, reading in zip(stored, readings, strict=True)
            if message.position in inside
        ]
        begin = index
    return shown
