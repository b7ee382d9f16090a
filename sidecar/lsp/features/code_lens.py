"""Puts above each turn how much of the window is full when it ends."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.view import View
from sidecar.messages.turns import turn_id


def register(server: TranscriptServer) -> None:
    """Serve `textDocument/codeLens`."""

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def code_lens(  # pyright: ignore[reportUnusedFunction]
        params: types.CodeLensParams,
    ) -> list[types.CodeLens]:
        budget = server.token_budget
        return await server.answer(params.text_document.uri, lambda view: list(code_lenses(view, budget)))


def code_lenses(view: View, budget: int) -> Iterator[types.CodeLens]:
    """For each turn its messages and tokens, and the tokens of the transcript up to its end."""
    about = "" if view.exact else "about "
    total = 0
    for turn in view.outline.turns:
        tokens = sum(view.tokens(entry) for entry in turn.entries)
        total += tokens
        messages = "1 message" if len(turn.entries) == 1 else f"{len(turn.entries)} messages"
        title = (
            f"{turn_id(turn.number)}: {messages}, {about}{tokens:,} tokens; {total:,} so far, "
            f"{round(100 * total / budget)} % of {budget:,}"
        )
        # A command without a name is shown and cannot be clicked.
        yield types.CodeLens(view.first_line(turn.span), types.Command(title, ""))
