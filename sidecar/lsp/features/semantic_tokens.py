"""Colours the roles of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lsprotocol import types

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.outline import Entry
from sidecar.lsp.view import View

# Of the types that every theme colours.
KINDS = {"user": "keyword", "assistant": "string", "system": "macro", "tool": "function", "other": "comment"}
LEGEND = types.SemanticTokensLegend(list(KINDS.values()), [])

_MEMBER = re.compile(rb'"(?:role|type)"\s*:\s*("(?:[^"\\]|\\.)*")')


def register(server: TranscriptServer) -> None:
    """Serve `textDocument/semanticTokens/full`."""

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
    async def semantic_tokens(  # pyright: ignore[reportUnusedFunction]
        params: types.SemanticTokensParams,
    ) -> types.SemanticTokens:
        return await server.answer(params.text_document.uri, coloured)


def coloured(view: View) -> types.SemanticTokens:
    """The role of each message where its text names it, as LSP encodes tokens."""
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
    """Where the message names its role."""
    piece = view.piece(entry.span)
    role = entry.reading.wire_role
    found = view.text.kept.once(("role", role), piece, lambda: _named(piece, role))
    return None if found is None else (entry.span.start + found[0], entry.span.start + found[1])


def _named(piece: bytes, role: str) -> tuple[int, int] | None:
    wanted = f'"{role}"'.encode(errors="replace")
    return next((member.span(1) for member in _MEMBER.finditer(piece) if member[1] == wanted), None)
