"""Leads from the result of a tool to the message that calls it."""

from __future__ import annotations

from lsprotocol import types

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.view import View


def register(server: TranscriptServer) -> None:
    """Serve `textDocument/definition` and `textDocument/references`, which leads the other way."""

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(  # pyright: ignore[reportUnusedFunction]
        params: types.DefinitionParams,
    ) -> list[types.Location]:
        return await server.answer(params.text_document.uri, lambda view: calls_of(view, params.position))

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def references(  # pyright: ignore[reportUnusedFunction]
        params: types.ReferenceParams,
    ) -> list[types.Location]:
        return await server.answer(params.text_document.uri, lambda view: results_of(view, params.position))


def calls_of(view: View, position: types.Position) -> list[types.Location]:
    """Where the calls stand whose results the message at a position holds."""
    index = view.index_at(position)
    if index is None:
        return []
    callers = dict.fromkeys(caller for caller in view.entries[index].called_in if caller is not None)
    return [types.Location(view.uri, view.first_line(view.entries[caller].span)) for caller in callers]


def results_of(view: View, position: types.Position) -> list[types.Location]:
    """Where the results stand of what the message at a position calls."""
    index = view.index_at(position)
    if index is None or not view.entries[index].reading.calls:
        return []
    return [
        types.Location(view.uri, view.first_line(other.span))
        for other in view.entries[index + 1 :]
        if index in other.called_in
    ]
