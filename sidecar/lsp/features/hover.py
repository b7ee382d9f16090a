"""Tells of the message under the cursor: its speaker and size, its calls with their results."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.outline import Entry
from sidecar.lsp.session_names import session_of
from sidecar.lsp.view import View
from sidecar.messages.contract import ToolCall, ToolResult
from sidecar.messages.turns import turn_id

LONGEST_TEXT = 2_000
"""Characters of a call's arguments or a result that are shown."""


def register(server: TranscriptServer) -> None:
    """Serve `textDocument/hover`."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:  # pyright: ignore[reportUnusedFunction]
        uri, position = params.text_document.uri, params.position
        index = await server.answer(uri, lambda view: view.index_at(position))
        if index is None:
            return None
        stands = await _standing(server, uri, index)
        return await server.answer(uri, lambda view: told(view, index, stands))


def told(view: View, index: int, stands: list[str]) -> types.Hover | None:
    """What is to be known of a message."""
    if index >= len(view.entries):
        return None
    entry = view.entries[index]
    parts = [_heading(view, index), *stands, *_calls(view, index), *_results(view, entry)]
    content = types.MarkupContent(types.MarkupKind.Markdown, "\n\n".join(parts))
    return types.Hover(content, range=view.range(entry.span))


async def _standing(server: TranscriptServer, uri: str, index: int) -> list[str]:
    """What became of a message of a stored session in what the model sees, if that is known."""
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
    if entry.reading.mark is not None:
        parts.append(f"written by the sidecar ({entry.reading.mark.kind})")
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
    """The text as code, with a fence that it does not hold itself."""
    shown = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}\n... {len(text):,} characters"
    fence = "```"
    while fence in shown:
        fence += "`"
    return f"{fence}\n{shown}\n{fence}"
