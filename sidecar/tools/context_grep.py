"""The tool `context_grep`: every message that matches, under the summary that stands for it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, json

from sidecar.messages.terse_tags import one_line
from sidecar.messages.text import searchable
from sidecar.store.search import SearchHit, SearchKind, SearchQuery, SearchResult
from sidecar.store.search.excerpt import Passage, cut, passage_for
from sidecar.tools.arguments import Number, read_arguments, whole
from sidecar.tools.bounding import CLOSING, LIMIT
from sidecar.tools.context_expand import Named
from sidecar.tools.context_grep_schema import DESCRIPTION, INPUT_SCHEMA
from sidecar.tools.contract import ToolOutcome, ToolSession
from sidecar.tools.coverage import Coverage
from sidecar.tools.times import read_time

MATCHES = 20
"""Matches that are shown unless the model asks for others."""
MOST = 100
"""Matches that are shown at most."""
PASSAGE = 400
"""Characters of a message that are shown, where there is room."""
HEADING = 160
"""Characters that a heading and the beginning of a line take together, about."""


class GrepArguments(Struct, rename="camel"):
    """Arguments of the tool."""

    pattern: Named
    kind: Literal["regex", "literal", "words"] | None = None
    first: Number | None = None
    last: Number | None = None
    since: Named | None = None
    until: Named | None = None
    tool: Named | None = None
    limit: Annotated[float, Meta(ge=1, multiple_of=1)] | None = None
    order: Literal["newest", "oldest"] | None = None
    cursor: Named | None = None


class Match(Struct, frozen=True, kw_only=True, rename="camel"):
    """One message that matches."""

    position: int
    message_id: str
    turn_id: str
    role: str
    text: str
    """The part of the message that matches."""


class Group(Struct, frozen=True, kw_only=True, rename="camel"):
    """The matches under one summary."""

    node_id: str | UnsetType = UNSET
    """Left out for messages that no summary stands for."""
    first_position: int | UnsetType = UNSET
    last_position: int | UnsetType = UNSET
    within: list[str] = []
    """Ids of the summaries that stand for this one, the nearest first."""
    matches: list[Match]


class Matches(Struct, frozen=True, kw_only=True, rename="camel"):
    """What was found, for programs."""

    complete: bool
    """Whether these are all matches there are, in all messages that were to be searched."""
    message_count: int
    groups: list[Group]
    next_cursor: str | UnsetType = UNSET


class ContextGrep:
    """Finds messages by a pattern."""

    name: ClassVar[str] = "context_grep"
    description: ClassVar[str] = DESCRIPTION
    input_schema: ClassVar[bytes] = json.encode(INPUT_SCHEMA)

    async def call(self, session: ToolSession, arguments: bytes) -> ToolOutcome:
        """As `AgentTool.call`."""
        given = read_arguments(arguments, GrepArguments)
        kind: SearchKind = given.kind or "regex"
        result = await session.store.search(
            session.head.ref,
            SearchQuery(
                text=given.pattern,
                kind=kind,
                limit=min(whole(given.limit, MATCHES), MOST),
                first=whole(given.first, 1),
                last=None if given.last is None else whole(given.last, 1),
                tool=given.tool,
                since_ms=read_time(given.since, "since"),
                until_ms=read_time(given.until, "until"),
                newest_first=given.order != "oldest",
                cursor=given.cursor,
            ),
        )
        length = min(PASSAGE, (LIMIT - CLOSING) // max(len(result.hits), 1) - HEADING)
        passage = passage_for(kind, given.pattern)
        matches = [await _match(session, hit, passage, max(length, 20)) for hit in result.hits]
        groups = _grouped(Coverage(await session.store.summaries(session.head.ref, texts=False)), matches)
        told = Matches(
            complete=result.complete and result.next_cursor is None,
            message_count=session.head.message_count,
            groups=groups,
            next_cursor=result.next_cursor or UNSET,
        )
        return ToolOutcome(_text(session, given.pattern, result, told), json.encode(told))


async def _match(session: ToolSession, hit: SearchHit, passage: Passage, length: int) -> Match:
    stored = (await session.read(hit.position, hit.position))[0]
    text = searchable(session.dialect, stored.body).text
    return Match(
        position=hit.position,
        message_id=stored.message_id,
        turn_id=stored.turn_id,
        role=stored.role,
        text=passage(text, length),
    )


def _grouped(coverage: Coverage, matches: list[Match]) -> list[Group]:
    """The matches under the finest summaries that stand for them, in the order in which they were found."""
    groups: dict[str, Group] = {}
    for match in matches:
        node = coverage.finest(match.position)
        name = node.node_id if node else ""
        group = groups.get(name)
        if group is None:
            group = groups[name] = (
                Group(
                    node_id=node.node_id,
                    first_position=node.first_position,
                    last_position=node.last_position,
                    within=[parent.node_id for parent in coverage.above(node)],
                    matches=[],
                )
                if node
                else Group(matches=[])
            )
        group.matches.append(match)
    return list(groups.values())


def _text(session: ToolSession, pattern: str, result: SearchResult, told: Matches) -> str:
    asked = cut(one_line(pattern), 0, 100)
    count, found = session.head.message_count, len(result.hits)
    if told.complete:
        first = f'{_counted(found)} "{asked}": these are all, of {count}.'
    else:
        first = f'{found} messages that match "{asked}", NOT all: there may be more among {count}.'
    lines = [first]
    for group in told.groups:
        lines.append(_heading(group))
        lines += [
            f"{match.position} [{one_line(match.role)} {one_line(match.turn_id)[:60]}] {one_line(match.text)}"
            for match in group.matches
        ]
    if told.next_cursor is not UNSET:
        lines.append(f'--- the same arguments with cursor "{told.next_cursor}" go on ---')
    elif not told.complete:
        lines.append("--- a narrower pattern, or a smaller range of messages, shows the others ---")
    return "\n".join(lines)


def _counted(found: int) -> str:
    return "1 message matches" if found == 1 else f"{found or 'No'} messages match"


def _heading(group: Group) -> str:
    if group.node_id is UNSET:
        return "--- no summary stands for these ---"
    within = f", within {', '.join(group.within)}" if group.within else ""
    return f"--- summary {group.node_id} of messages {group.first_position}-{group.last_position}{within} ---"
