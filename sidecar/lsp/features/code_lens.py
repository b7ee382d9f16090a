"""Puts above each turn how much of the window is full when it ends, and what the model saw of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

from lsprotocol import types

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.outline import Turn
from sidecar.lsp.session_names import session_behind, session_of
from sidecar.lsp.view import View
from sidecar.messages.turns import turn_id

SHOW = "contextSidecar.showContext"
"""The client's command that shows what the model saw at a turn."""

Standings = Mapping[int, tuple[str, str]]


def register(server: TranscriptServer) -> None:
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
    """For each turn its messages and tokens, the tokens up to its end, and what the model saw of it.

    `known` says what became of messages, by position from 1; `shows` whether the client can show more.
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
            # A command without a name is shown and cannot be clicked.
            yield types.CodeLens(place, types.Command(title, ""))


def _seen(known: Standings, first: int, last: int) -> str:
    """What became of the messages of a turn in what the model sees."""
    counts = Counter(known[position][0] for position in range(first, last + 1) if position in known)
    return "; the model sees " + ", ".join(f"{n} {what}" for what, n in counts.items()) if counts else ""


def _place(view: View, turn: Turn, place: types.Range) -> dict[str, Any]:
    named = {"uri": view.uri, "line": place.start.line, "turnId": turn_id(turn.number)}
    session_id = session_behind(view.uri)
    return named if session_id is None else {**named, "sessionId": session_id}


def _shows_contexts(capabilities: types.ClientCapabilities) -> bool:
    """Whether the client names the command under `experimental.commands.commands`."""
    found = cast(object, capabilities.experimental)
    for name in ("commands", "commands"):
        found = cast("dict[str, object]", found).get(name) if isinstance(found, dict) else None
    return isinstance(found, list) and SHOW in found
