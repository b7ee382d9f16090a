"""The tool `context_expand`: stored messages word for word, in pages."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from msgspec import UNSET, Meta, Struct, json

from sidecar.tools.arguments import Number, read_arguments, whole
from sidecar.tools.context_expand_schema import DESCRIPTION, INPUT_SCHEMA
from sidecar.tools.contract import ArgumentError, ToolFailed, ToolOutcome, ToolSession
from sidecar.tools.rendering import tool_names
from sidecar.tools.selecting import Selection, select
from sidecar.tools.times import read_time
from sidecar.tools.verbatim import Form, Page, PageBuilder, Place, words_of, written

AT_ONCE = 16
"""Messages that are read at a time."""
LOOK_BACK = 40
"""Messages in front of a result within which its call is looked for."""

_CURSOR = re.compile(r"([1-9][0-9]{0,14})\.([0-9]{1,15})\.([0-9]{1,15})")

Named = Annotated[str, Meta(min_length=1)]


class ExpandArguments(Struct, rename="camel"):
    """Arguments of the tool."""

    node: Named | None = None
    first: Number | None = None
    last: Number | None = None
    message_id: Named | None = None
    since: Named | None = None
    until: Named | None = None
    tool: Named | None = None
    form: Form | None = None
    cursor: Named | None = None


class ContextExpand:
    """Shows stored messages word for word."""

    name: ClassVar[str] = "context_expand"
    description: ClassVar[str] = DESCRIPTION
    input_schema: ClassVar[bytes] = json.encode(INPUT_SCHEMA)

    async def call(self, session: ToolSession, arguments: bytes) -> ToolOutcome:
        """As `AgentTool.call`."""
        given = read_arguments(arguments, ExpandArguments)
        wanted = await _selection(session, given)
        begin = _begin(session, given.cursor) or Place(wanted.first)
        page = PageBuilder(begin)
        looked_at = await select(session, wanted, begin.position)
        await _fill(page, session, looked_at.positions, given.form or "text")
        following = page.reached or (Place(looked_at.more_from) if looked_at.more_from else None)
        return _outcome(session, page, following)


async def _fill(page: PageBuilder, session: ToolSession, positions: list[int], form: Form) -> None:
    """Put messages on a page until it is full."""
    read = session.dialect.read
    tools: dict[str, str] = {}
    if positions and form == "text":
        before = await session.read(positions[0] - LOOK_BACK, positions[0] - 1)
        tools = tool_names(read(message.body) for message in before)
    for start in range(0, len(positions), AT_ONCE):
        some = positions[start : start + AT_ONCE]
        wanted = set(some)
        if some[-1] - some[0] < 2 * AT_ONCE:
            stored = [m for m in await session.read(some[0], some[-1]) if m.position in wanted]
        else:
            stored = [message for each in some for message in await session.read(each, each)]
        for message in stored:
            reading = read(message.body)
            tools.update(tool_names([reading]))
            if not page.add(message, words_of(message, reading, form, tools)):
                return


def _outcome(session: ToolSession, page: PageBuilder, following: Place | None) -> ToolOutcome:
    head = session.head
    cursor = f"{following.position}.{following.offset}.{head.revision}" if following else None
    told = Page(
        messages=page.parts,
        message_count=head.message_count,
        complete=cursor is None,
        next_cursor=cursor or UNSET,
    )
    if not page.parts:
        text = f"None of the {head.message_count} messages of this conversation is what you ask for."
        return ToolOutcome(text, json.encode(told))
    closing = f'--- there is more: the same arguments with cursor "{cursor}" go on ---' if cursor else ""
    text = written(page.parts, head.message_count)
    return ToolOutcome(f"{text}\n{closing}" if closing else text, json.encode(told))


async def _selection(session: ToolSession, given: ExpandArguments) -> Selection:
    first, last = 1, session.head.message_count
    if given.node is not None:
        first, last = await _range_of(session, given.node)
    if given.message_id is not None:
        stored = await session.store.message(session.head.ref, given.message_id)
        if stored is None:
            raise ToolFailed(f"There is no message {given.message_id[:100]} in this conversation.")
        first, last = max(first, stored.position), min(last, stored.position)
    return Selection(
        first=max(first, whole(given.first, 1)),
        last=min(last, whole(given.last, last)),
        tool=given.tool,
        since_ms=read_time(given.since, "since"),
        until_ms=read_time(given.until, "until"),
    )


async def _range_of(session: ToolSession, node: str) -> tuple[int, int]:
    """The messages that a summary stands for."""
    for known in await session.store.summary_nodes(session.head.ref, [node]):
        return known.first_position, known.last_position
    raise ToolFailed(
        f"There is no summary {node[:100]} any more. Its messages are still there: read them by their "
        'numbers with "first" and "last".'
    )


def _begin(session: ToolSession, cursor: str | None) -> Place | None:
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise ArgumentError("must be the one from the last line of the page before", "cursor")
    if int(match[3]) != session.head.revision:
        raise ToolFailed("The history was rewritten since that page; leave the cursor out to begin anew.")
    return Place(int(match[1]), int(match[2]))
