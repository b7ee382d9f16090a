"""Annotations of a transcript: code lenses on turns, token counts as inlay hints, colours by role."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

from lsprotocol import types

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.outline import Entry, Turn, session_behind, session_of
from sidecar.lsp.view import View
from sidecar.messages.pairing import turn_id

SHOW = "contextSidecar.showContext"
"""The client's command to show what the model saw at a turn."""

Standings = Mapping[int, tuple[str, str]]


def register_code_lenses(server: TranscriptServer) -> None:
    """Serve `textDocument/codeLens`."""

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def code_lens(  # pyright: ignore[reportUnusedFunction]
        params: types.CodeLensParams,
    ) -> list[types.CodeLens]:
        uri, budget = params.text_document.uri, server.token_budget
        session_id = session_of(uri)
        known: Standings = {}
        if session_id is not None and server.stored is not None:
            known = await server.stored.standings(session_id)
        shows = _shows_contexts(server.client_capabilities)
        return await server.answer(uri, lambda view: list(code_lenses(view, budget, known, shows=shows)))


def code_lenses(
    view: View, budget: int, known: Standings | None = None, *, shows: bool = False
) -> Iterator[types.CodeLens]:
    """For each turn, its messages and tokens, the total tokens so far, and what the model saw of it.

    `known` has the decision on each message by position, from 1; `shows` means that the client has `SHOW`.
    """
    about = "" if view.exact else "about "
    total = count = 0
    for turn in view.outline.turns:
        tokens = sum(view.tokens(entry) for entry in turn.entries)
        total += tokens
        messages = "1 message" if len(turn.entries) == 1 else f"{len(turn.entries)} messages"
        title = (
            f"{turn_id(turn.number)}: {messages}, {about}{tokens:,} tokens; {total:,} so far, "
            f"{round(100 * total / budget)} % of {budget:,}"
        )
        title += _seen(known or {}, count + 1, count + len(turn.entries))
        count += len(turn.entries)
        place = view.first_line(turn.span)
        if shows:
            yield types.CodeLens(place, types.Command(title, SHOW, arguments=[_place(view, turn, place)]))
        else:
            # A command without a name is displayed but not clickable.
            yield types.CodeLens(place, types.Command(title, ""))


def _seen(known: Standings, first: int, last: int) -> str:
    """A summary of the decisions on a turn's messages."""
    counts = Counter(known[position][0] for position in range(first, last + 1) if position in known)
    return "; the model sees " + ", ".join(f"{n} {what}" for what, n in counts.items()) if counts else ""


def _place(view: View, turn: Turn, place: types.Range) -> dict[str, Any]:
    named = {"uri": view.uri, "line": place.start.line, "turnId": turn_id(turn.number)}
    session_id = session_behind(view.uri)
    return named if session_id is None else {**named, "sessionId": session_id}


def _shows_contexts(capabilities: types.ClientCapabilities) -> bool:
    """Whether the client lists the command under `experimental.commands.commands`."""
    found = cast(object, capabilities.experimental)
    for name in ("commands", "commands"):
        found = cast("dict[str, object]", found).get(name) if isinstance(found, dict) else None
    return isinstance(found, list) and SHOW in found


def register_inlay_hints(server: TranscriptServer) -> None:
    """Serve `textDocument/inlayHint`."""

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hint(  # pyright: ignore[reportUnusedFunction]
        params: types.InlayHintParams,
    ) -> list[types.InlayHint]:
        return await server.answer(
            params.text_document.uri, lambda view: list(inlay_hints(view, params.range))
        )


def inlay_hints(view: View, wanted: types.Range) -> Iterator[types.InlayHint]:
    """The tokens of each message that overlaps a range, at the end of its first line."""
    about = "" if view.exact else "~"
    for entry in view.entries_within(wanted):
        yield types.InlayHint(
            view.first_line(entry.span).end,
            f"{about}{view.tokens(entry):,} tokens",
            tooltip=_tooltip(entry),
            padding_left=True,
        )


def _tooltip(entry: Entry) -> str:
    reading = entry.reading
    parts = [f"{reading.wire_role}: {len(reading.text):,} characters of text"]
    parts += [f"call of {call.name}: {len(call.arguments):,} characters" for call in reading.calls]
    parts += [f"result: {len(result.text):,} characters" for result in reading.results]
    return "\n".join(parts)


# Types that every theme colours.
KINDS = {"user": "keyword", "assistant": "string", "system": "macro", "tool": "function", "other": "comment"}
LEGEND = types.SemanticTokensLegend(list(KINDS.values()), [])

_MEMBER = re.compile(rb'"(?:role|type)"\s*:\s*("(?:[^"\\]|\\.)*")')


def register_semantic_tokens(server: TranscriptServer) -> None:
    """Serve `textDocument/semanticTokens/full`."""

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
    async def semantic_tokens(  # pyright: ignore[reportUnusedFunction]
        params: types.SemanticTokensParams,
    ) -> types.SemanticTokens:
        return await server.answer(params.text_document.uri, role_tokens)


def role_tokens(view: View) -> types.SemanticTokens:
    """The role of each message, where its text names it, in LSP's token encoding."""
    data: list[int] = []
    line = character = 0
    for place, length, kind in sorted(_roles(view)):
        same = place[0] == line
        data += [place[0] - line, place[1] - character if same else place[1], length, kind, 0]
        line, character = place
    return types.SemanticTokens(data)


def _roles(view: View) -> Iterator[tuple[tuple[int, int], int, int]]:
    names = list(KINDS)
    for entry in view.entries:
        found = _role(view, entry)
        if found is None:
            continue
        start, end = (view.places.place(offset) for offset in found)
        kind = names.index("tool" if entry.reading.results else entry.reading.role)
        yield (start.line, start.character), end.character - start.character, kind


def _role(view: View, entry: Entry) -> tuple[int, int] | None:
    """The byte range in which the message names its role, or `None`."""
    piece = view.piece(entry.span)
    role = entry.reading.wire_role
    found = view.text.kept.once(("role", role), piece, lambda: _named(piece, role))
    return None if found is None else (entry.span.start + found[0], entry.span.start + found[1])


def _named(piece: bytes, role: str) -> tuple[int, int] | None:
    wanted = f'"{role}"'.encode(errors="replace")
    return next((member.span(1) for member in _MEMBER.finditer(piece) if member[1] == wanted), None)
