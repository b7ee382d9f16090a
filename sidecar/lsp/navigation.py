"""Hovers for messages, and jumps between calls, results, summaries and their sources."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.outline import Entry, session_behind, session_of, session_uri
from sidecar.lsp.view import View
from sidecar.messages.contract import ToolCall, ToolResult
from sidecar.messages.fence import claimed_mark
from sidecar.messages.pairing import turn_id
from sidecar.store.stored import SessionRef, SummaryNode

LONGEST_TEXT = 2_000
"""Maximum characters shown of a call's arguments or of a result."""


def register_hover(server: TranscriptServer) -> None:
    """Serve `textDocument/hover`."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:  # pyright: ignore[reportUnusedFunction]
        uri, position = params.text_document.uri, params.position
        index = await server.answer(uri, lambda view: view.index_at(position))
        if index is None:
            return None
        decision = await _decision(server, uri, index)
        return await server.answer(uri, lambda view: hover_text(view, index, decision))


def hover_text(view: View, index: int, decision: list[str]) -> types.Hover | None:
    """The hover of a message."""
    if index >= len(view.entries):
        return None
    entry = view.entries[index]
    parts = [_heading(view, index), *decision, *_calls(view, index), *_results(view, entry)]
    content = types.MarkupContent(types.MarkupKind.Markdown, "\n\n".join(parts))
    return types.Hover(content, range=view.range(entry.span))


async def _decision(server: TranscriptServer, uri: str, index: int) -> list[str]:
    """The decision on a message of a stored session in the newest answer, if known."""
    session_id = session_of(uri)
    if session_id is None or server.stored is None:
        return []
    position = index + 1
    found = (await server.stored.standings(session_id, position, position)).get(position)
    return [f"What the model sees of it: {found[0]} ({found[1]})"] if found else []


def _heading(view: View, index: int) -> str:
    entry = view.entries[index]
    before = sum(view.tokens(other) for other in view.entries[:index])
    about = "" if view.exact else "about "
    parts = [
        f"**{entry.reading.wire_role}**",
        turn_id(view.turn_number(index)),
        f"message {index + 1} of {len(view.entries)}",
        f"{about}{view.tokens(entry):,} tokens",
        f"{before:,} before it",
    ]
    if (mark := claimed_mark(entry.reading.text)) is not None:
        parts.append(f"marked as written by the sidecar ({mark.kind})")
    if entry.reading.carries_reasoning:
        parts.append("carries reasoning")
    return " · ".join(parts)


def _calls(view: View, index: int) -> Iterator[str]:
    for call in view.entries[index].reading.calls:
        yield f"Calls `{call.name}`:\n{_fenced(call.arguments)}"
        result = _result_of(view, index, call)
        yield "No result is recorded." if result is None else _answer(result)


def _results(view: View, entry: Entry) -> Iterator[str]:
    for number, result in enumerate(entry.reading.results):
        caller = entry.called_in[number]
        if caller is None:
            yield f"{_answer(result)}\n\nNo call is recorded."
            continue
        calls = view.entries[caller].reading.calls
        made = next((call for call in calls if call.id == result.call_id), calls[0])
        yield f"{_answer(result)}\n\nof `{made.name}`:\n{_fenced(made.arguments)}"


def _result_of(view: View, index: int, call: ToolCall) -> ToolResult | None:
    for entry in view.entries[index + 1 :]:
        for caller, result in zip(entry.called_in, entry.reading.results, strict=False):
            if caller == index and (result.call_id == call.id or len(view.entries[index].reading.calls) == 1):
                return result
    return None


def _answer(result: ToolResult) -> str:
    return f"{'Error' if result.is_error else 'Result'}:\n{_fenced(result.text)}"


def _fenced(text: str) -> str:
    """The text as a code block, with a fence that the text does not contain."""
    shown = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}\n... {len(text):,} characters"
    fence = "```"
    while fence in shown:
        fence += "`"
    return f"{fence}\n{shown}\n{fence}"


MOST_SESSIONS = 50
"""Maximum sessions searched for a summary."""


def register_definitions(server: TranscriptServer) -> None:
    """Serve `textDocument/definition` and its inverse, `textDocument/references`."""

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(  # pyright: ignore[reportUnusedFunction]
        params: types.DefinitionParams,
    ) -> list[types.Location]:
        uri = params.text_document.uri
        found, summary = await server.answer(
            uri, lambda view: (calls_of(view, params.position), summary_at(view, params.position))
        )
        return found if summary is None else await sources_of(server, uri, summary)

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def references(  # pyright: ignore[reportUnusedFunction]
        params: types.ReferenceParams,
    ) -> list[types.Location]:
        return await server.answer(params.text_document.uri, lambda view: results_of(view, params.position))


def calls_of(view: View, position: types.Position) -> list[types.Location]:
    """Locations of the calls whose results are in the message at a position."""
    index = view.index_at(position)
    if index is None:
        return []
    callers = dict.fromkeys(caller for caller in view.entries[index].called_in if caller is not None)
    return [types.Location(view.uri, view.first_line(view.entries[caller].span)) for caller in callers]


def summary_at(view: View, position: types.Position) -> str | None:
    """The id of the summary in the message at a position; `None` if it is not a summary."""
    index = view.index_at(position)
    mark = None if index is None else claimed_mark(view.entries[index].reading.text)
    return mark.ref if mark is not None and mark.kind == "summary" else None


async def sources_of(server: TranscriptServer, uri: str, node_id: str) -> list[types.Location]:
    """Locations of the messages that a summary covers, one for each of its source summaries.

    If the document is not a stored session, the summary is searched in the most recently changed sessions.
    """
    stored = server.stored
    if stored is None:
        return []
    session_id = session_behind(uri)
    if session_id is None:
        heads, _ = await stored.store.sessions(stored.namespace, MOST_SESSIONS, None)
        refs = [head.ref for head in heads]
    else:
        refs = [SessionRef(stored.namespace, session_id)]
    for ref in refs:
        for node in await stored.store.summary_nodes(ref, [node_id]):
            sources = await stored.store.summary_nodes(ref, node.sources)
            made_of = sorted(sources, key=lambda source: source.first_position) or [node]
            return [_covered(ref, source) for source in made_of]
    return []


def _covered(ref: SessionRef, node: SummaryNode) -> types.Location:
    """The lines of a stored session covered by a summary."""
    lines = types.Range(types.Position(node.first_position - 1, 0), types.Position(node.last_position, 0))
    return types.Location(session_uri(ref.session_id), lines)


def results_of(view: View, position: types.Position) -> list[types.Location]:
    """Locations of the results of the calls in the message at a position."""
    index = view.index_at(position)
    if index is None or not view.entries[index].reading.calls:
        return []
    return [
        types.Location(view.uri, view.first_line(other.span))
        for other in view.entries[index + 1 :]
        if index in other.called_in
    ]
