"""Symbols and folding ranges: turns and messages of a transcript, and stored sessions by name."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from lsprotocol import types
from lsprotocol.types import SymbolKind
from msgspec import Raw, Struct

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.outline import Entry, Place, Turn, session_uri
from sidecar.lsp.view import View
from sidecar.messages.contract import Reading
from sidecar.messages.dialects import dialect
from sidecar.messages.importers import Span
from sidecar.messages.pairing import turn_id
from sidecar.messages.text import plain_text
from sidecar.store.search import SearchQuery
from sidecar.store.search.excerpt import best_passage
from sidecar.store.stored import SessionHead, SessionRef

LONGEST_NAME = 80
"""Maximum characters of a message shown in its symbol."""

# Kinds that every client knows.
KINDS = {
    "system": SymbolKind.Constant,
    "user": SymbolKind.Interface,
    "assistant": SymbolKind.String,
    "tool": SymbolKind.Field,
    "other": SymbolKind.Property,
}


class Position(Struct, frozen=True, gc=False):
    """A position; like the other types here, it encodes faster than its lsprotocol counterpart."""

    line: int
    character: int


class Range(Struct, frozen=True, gc=False):
    """A range of positions."""

    start: Position
    end: Position


class Symbol(Struct, rename="camel", omit_defaults=True):
    """A `DocumentSymbol`."""

    name: str
    kind: int
    range: Range
    selection_range: Range
    detail: str
    children: list[Symbol] | None = None


class _Location(Struct):
    uri: str
    range: Range


class _FlatSymbol(Struct, rename="camel", omit_defaults=True):
    """A `SymbolInformation`."""

    name: str
    kind: int
    location: _Location
    container_name: str | None = None


def register_document_symbols(server: TranscriptServer) -> None:
    """Serve `textDocument/documentSymbol`."""

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def document_symbol(params: types.DocumentSymbolParams) -> Raw:  # pyright: ignore[reportUnusedFunction]
        as_tree = _takes_a_tree(server.client_capabilities)
        return await server.answer(params.text_document.uri, lambda view: written(view, as_tree=as_tree))


def written(view: View, *, as_tree: bool) -> Raw:
    """The symbols of a transcript as JSON, as a tree or, for clients without tree support, as a flat list."""
    symbols = document_symbols(view)
    return Raw(msgspec.json.encode(symbols if as_tree else list(_flat(view.uri, symbols))))


def document_symbols(view: View) -> list[Symbol]:
    """The turns of a transcript, with their messages and calls inside."""
    return [_turn_symbol(view, turn) for turn in view.outline.turns]


def _turn_symbol(view: View, turn: Turn) -> Symbol:
    count = len(turn.entries)
    ranges = [(_ranges(view, entry)) for entry in turn.entries]
    whole = Range(ranges[0][0].start, ranges[-1][0].end)
    return Symbol(
        f"{turn_id(turn.number)}: {message_name(view, turn.opening)}",
        SymbolKind.Namespace,
        whole,
        whole if whole == ranges[0][1] else ranges[0][1],
        "1 message" if count == 1 else f"{count} messages",
        [_message_symbol(view, entry, *both) for entry, both in zip(turn.entries, ranges, strict=True)],
    )


def _ranges(view: View, entry: Entry) -> tuple[Range, Range]:
    """The ranges of a message and of its first line; the same object if it has only one line."""
    places, span = view.places, entry.span
    start, end = places.place(span.start), places.place(span.end)
    whole = Range(_position(start), _position(end))
    if start.line == end.line:
        return whole, whole
    return whole, Range(whole.start, _position(places.place(places.end(span.start))))


def _position(place: Place) -> Position:
    return Position(place.line, place.character)


def _message_symbol(view: View, entry: Entry, whole: Range, first_line: Range) -> Symbol:
    reading = entry.reading
    calls = [
        Symbol(call.name or "call", SymbolKind.Function, whole, first_line, _short(call.arguments))
        for call in reading.calls
    ]
    kind = KINDS["tool" if reading.results else reading.role]
    return Symbol(message_name(view, entry), kind, whole, first_line, _role(reading), calls or None)


def _role(reading: Reading) -> str:
    if reading.results and any(result.is_error for result in reading.results):
        return "tool error"
    if reading.results:
        return "tool result"
    return reading.wire_role if reading.role == "other" else reading.role


def message_name(view: View, entry: Entry) -> str:
    """The message's text on one line, never empty."""
    tools = ", ".join(filter(None, entry.result_names))
    key = ("said", view.outline.message_format)
    said = view.text.kept.once(key, view.piece(entry.span), lambda: _said(entry.reading))
    return f"{tools}: {said}" if tools else said


def _said(reading: Reading) -> str:
    return _short(plain_text(reading)) or _short(reading.reasoning) or reading.wire_role or "message"


def _short(text: str) -> str:
    words = " ".join(text[: 8 * LONGEST_NAME].split())
    return words if len(words) <= LONGEST_NAME else f"{words[: LONGEST_NAME - 3]}..."


def _flat(uri: str, symbols: list[Symbol], inside: str | None = None) -> Iterator[_FlatSymbol]:
    for symbol in symbols:
        yield _FlatSymbol(symbol.name, symbol.kind, _Location(uri, symbol.range), inside)
        yield from _flat(uri, symbol.children or [], symbol.name)


def _takes_a_tree(capabilities: types.ClientCapabilities) -> bool:
    declared = capabilities.text_document and capabilities.text_document.document_symbol
    return bool(declared and declared.hierarchical_document_symbol_support)


def register_folding_ranges(server: TranscriptServer) -> None:
    """Serve `textDocument/foldingRange`."""

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    async def folding_range(  # pyright: ignore[reportUnusedFunction]
        params: types.FoldingRangeParams,
    ) -> list[types.FoldingRange]:
        return await server.answer(params.text_document.uri, folding_ranges)


def folding_ranges(view: View) -> list[types.FoldingRange]:
    """Folding ranges of turns and messages with several lines, by first line."""
    spans = [turn.span for turn in view.outline.turns]
    spans += [entry.span for entry in view.entries]
    found = {(fold.start_line, fold.end_line): fold for fold in _folds(view, spans)}
    return [found[lines] for lines in sorted(found)]


def _folds(view: View, spans: list[Span]) -> Iterator[types.FoldingRange]:
    for span in spans:
        first, last = view.places.line(span.start), view.places.line(span.end)
        if first < last:
            yield types.FoldingRange(first, last, kind=types.FoldingRangeKind.Region)


MOST_SESSIONS = 200
MOST_MESSAGES = 20
LONGEST_SESSION_NAME = 80
"""Maximum characters shown of a message found, around the match."""


def register_workspace_symbols(server: TranscriptServer) -> None:
    """Serve `workspace/symbol`."""

    @server.feature(types.WORKSPACE_SYMBOL)
    async def workspace_symbol(  # pyright: ignore[reportUnusedFunction]
        params: types.WorkspaceSymbolParams,
    ) -> list[types.WorkspaceSymbol]:
        return await sessions_found(server, params.query)


async def sessions_found(server: TranscriptServer, query: str) -> list[types.WorkspaceSymbol]:
    """Sessions whose names contain the query, newest first; then messages that match it, best first."""
    stored = server.stored
    if stored is None:
        return []
    heads, _ = await stored.store.sessions(stored.namespace, MOST_SESSIONS, None)
    wanted = query.casefold()
    symbols = [_session_symbol(head) for head in heads if wanted in _names(head).casefold()]
    if query.strip():
        hits = await stored.store.search_sessions(
            stored.namespace, SearchQuery(text=query, limit=MOST_MESSAGES)
        )
        for hit in hits.hits:
            symbols += await _stored_message(server, hit.ref, hit.position, query)
    return symbols


def _names(head: SessionHead) -> str:
    return f"{head.ref.session_id} {head.session_key or ''}"


def _session_symbol(head: SessionHead) -> types.WorkspaceSymbol:
    name = head.session_key or head.ref.session_id
    place = types.LocationUriOnly(session_uri(head.ref.session_id))
    inside = "1 message" if head.message_count == 1 else f"{head.message_count:,} messages"
    return types.WorkspaceSymbol(place, name, SymbolKind.Namespace, container_name=inside)


async def _stored_message(
    server: TranscriptServer, ref: SessionRef, position: int, query: str
) -> list[types.WorkspaceSymbol]:
    assert server.stored is not None
    store = server.stored.store
    head, messages = await store.session(ref), await store.messages(ref, position, position)
    if head is None or not messages:
        return []
    reading = dialect(head.message_format).read(messages[0].body)
    about = best_passage(plain_text(reading), query, 2 * LONGEST_SESSION_NAME)
    said = best_passage(" ".join(about.split()), query, LONGEST_SESSION_NAME)
    place = types.LocationUriOnly(f"{session_uri(ref.session_id)}#{position}")
    inside = f"{head.session_key or ref.session_id} {messages[0].turn_id}"
    name = f"{reading.wire_role}: {said}"
    return [types.WorkspaceSymbol(place, name, SymbolKind.String, container_name=inside)]
