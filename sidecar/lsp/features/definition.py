"""Leads from the result of a tool to the message that calls it, from a summary to what it was made of."""

from __future__ import annotations

from lsprotocol import types

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.session_names import session_behind, session_uri
from sidecar.lsp.view import View
from sidecar.store.stored import SessionRef, SummaryNode

MOST_SESSIONS = 50
"""Sessions in which a summary is looked for."""


def register(server: TranscriptServer) -> None:
    """Serve `textDocument/definition` and `textDocument/references`, which leads the other way."""

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
    """Where the calls stand whose results the message at a position holds."""
    index = view.index_at(position)
    if index is None:
        return []
    callers = dict.fromkeys(caller for caller in view.entries[index].called_in if caller is not None)
    return [types.Location(view.uri, view.first_line(view.entries[caller].span)) for caller in callers]


def summary_at(view: View, position: types.Position) -> str | None:
    """The id of the summary that the message at a position is, `None` where it is none."""
    index = view.index_at(position)
    mark = None if index is None else view.entries[index].reading.mark
    return mark.ref if mark is not None and mark.kind == "summary" else None


async def sources_of(server: TranscriptServer, uri: str, node_id: str) -> list[types.Location]:
    """Where the messages stand that a summary covers: a place for each summary that it was made of.

    The summary of a transcript that is no stored session is looked for in the sessions that changed last.
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
    """The lines of a stored session that a summary covers."""
    lines = types.Range(types.Position(node.first_position - 1, 0), types.Position(node.last_position, 0))
    return types.Location(session_uri(ref.session_id), lines)


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
