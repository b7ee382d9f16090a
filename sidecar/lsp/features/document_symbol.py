"""Outlines a transcript: turns hold messages, which hold the calls of tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lsprotocol import types
from lsprotocol.types import DocumentSymbol, SymbolInformation, SymbolKind

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.outline import Entry, Turn
from sidecar.lsp.view import View
from sidecar.messages.contract import Reading
from sidecar.messages.excerpt import plain_text
from sidecar.messages.turns import turn_id

LONGEST_NAME = 80
"""Characters of a message that its symbol shows."""

# Of the kinds that every client knows.
KINDS = {
    "system": SymbolKind.Constant,
    "user": SymbolKind.Interface,
    "assistant": SymbolKind.String,
    "tool": SymbolKind.Field,
    "other": SymbolKind.Property,
}


def register(server: TranscriptServer) -> None:
    """Serve `textDocument/documentSymbol`."""

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def document_symbol(  # pyright: ignore[reportUnusedFunction]
        params: types.DocumentSymbolParams,
    ) -> Sequence[DocumentSymbol] | Sequence[SymbolInformation]:
        uri = params.text_document.uri
        symbols = await server.answer(uri, document_symbols)
        return symbols if _takes_a_tree(server.client_capabilities) else list(_flat(uri, symbols))


def document_symbols(view: View) -> list[DocumentSymbol]:
    """The turns of a transcript, with their messages and calls inside."""
    return [_turn(view, turn) for turn in view.outline.turns]


def _turn(view: View, turn: Turn) -> DocumentSymbol:
    count = len(turn.entries)
    return _symbol(
        view.ranges(turn.span),
        f"{turn_id(turn.number)}: {message_name(turn.opening)}",
        SymbolKind.Namespace,
        detail="1 message" if count == 1 else f"{count} messages",
        children=[_message(view, entry) for entry in turn.entries],
    )


def _message(view: View, entry: Entry) -> DocumentSymbol:
    reading = entry.reading
    ranges = view.ranges(entry.span)
    calls = [
        _symbol(ranges, call.name or "call", SymbolKind.Function, detail=_short(call.arguments))
        for call in reading.calls
    ]
    kind = KINDS["tool" if reading.results else reading.role]
    return _symbol(ranges, message_name(entry), kind, detail=_role(reading), children=calls or None)


def _symbol(
    ranges: tuple[types.Range, types.Range],
    name: str,
    kind: SymbolKind,
    *,
    detail: str,
    children: list[DocumentSymbol] | None = None,
) -> DocumentSymbol:
    return DocumentSymbol(
        name=name,
        kind=kind,
        range=ranges[0],
        selection_range=ranges[1],
        detail=detail,
        children=children,
    )


def _role(reading: Reading) -> str:
    if reading.results and any(result.is_error for result in reading.results):
        return "tool error"
    if reading.results:
        return "tool result"
    return reading.wire_role if reading.role == "other" else reading.role


def message_name(entry: Entry) -> str:
    """What the message says, in one line that is never empty."""
    reading = entry.reading
    tools = ", ".join(filter(None, entry.result_names))
    said = _short(plain_text(reading)) or _short(reading.reasoning) or reading.wire_role or "message"
    return f"{tools}: {said}" if tools else said


def _short(text: str) -> str:
    words = " ".join(text[: 8 * LONGEST_NAME].split())
    return words if len(words) <= LONGEST_NAME else f"{words[: LONGEST_NAME - 3]}..."


def _flat(
    uri: str, symbols: Sequence[DocumentSymbol], inside: str | None = None
) -> Iterator[SymbolInformation]:
    for symbol in symbols:
        place = types.Location(uri, symbol.range)
        yield SymbolInformation(place, symbol.name, symbol.kind, container_name=inside)
        yield from _flat(uri, symbol.children or (), symbol.name)


def _takes_a_tree(capabilities: types.ClientCapabilities) -> bool:
    declared = capabilities.text_document and capabilities.text_document.document_symbol
    return bool(declared and declared.hierarchical_document_symbol_support)
