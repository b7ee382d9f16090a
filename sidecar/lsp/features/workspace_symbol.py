"""Finds stored sessions, by their names, and messages, by their words."""

from __future__ import annotations

from lsprotocol import types
from lsprotocol.types import SymbolKind

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.session_names import session_uri
from sidecar.messages.dialects import dialect
from sidecar.messages.excerpt import plain_text
from sidecar.store.search import SearchQuery
from sidecar.store.stored import SessionHead, SessionRef

MOST_SESSIONS = 200
MOST_MESSAGES = 20
LONGEST_NAME = 80
"""Characters of a message that its symbol shows."""


def register(server: TranscriptServer) -> None:
    """Serve `workspace/symbol`."""

    @server.feature(types.WORKSPACE_SYMBOL)
    async def workspace_symbol(  # pyright: ignore[reportUnusedFunction]
        params: types.WorkspaceSymbolParams,
    ) -> list[types.WorkspaceSymbol]:
        return await found(server, params.query)


async def found(server: TranscriptServer, query: str) -> list[types.WorkspaceSymbol]:
    """Sessions in whose names the query stands, newest first; then messages that match it, best first."""
    stored = server.stored
    if stored is None:
        return []
    heads, _ = await stored.store.sessions(stored.namespace, MOST_SESSIONS, None)
    wanted = query.casefold()
    symbols = [_session(head) for head in heads if wanted in _names(head).casefold()]
    if query.strip():
        hits = await stored.store.search_sessions(
            stored.namespace, SearchQuery(text=query, limit=MOST_MESSAGES)
        )
        for hit in hits.hits:
            symbols += await _message(server, hit.ref, hit.position)
    return symbols


def _names(head: SessionHead) -> str:
    return f"{head.ref.session_id} {head.session_key or ''}"


def _session(head: SessionHead) -> types.WorkspaceSymbol:
    name = head.session_key or head.ref.session_id
    place = types.LocationUriOnly(session_uri(head.ref.session_id))
    inside = f"{head.message_count} messages"
    return types.WorkspaceSymbol(place, name, SymbolKind.Namespace, container_name=inside)


async def _message(server: TranscriptServer, ref: SessionRef, position: int) -> list[types.WorkspaceSymbol]:
    assert server.stored is not None
    store = server.stored.store
    head, messages = await store.session(ref), await store.messages(ref, position, position)
    if head is None or not messages:
        return []
    reading = dialect(head.message_format).read(messages[0].body)
    said = " ".join(plain_text(reading)[: 8 * LONGEST_NAME].split())[:LONGEST_NAME]
    place = types.LocationUriOnly(f"{session_uri(ref.session_id)}#{position}")
    inside = f"{head.session_key or ref.session_id} {messages[0].turn_id}"
    name = f"{reading.wire_role}: {said}"
    return [types.WorkspaceSymbol(place, name, SymbolKind.String, container_name=inside)]
