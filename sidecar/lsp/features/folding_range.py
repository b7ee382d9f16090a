"""Folds a transcript by turns, and messages that take several lines."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.view import View
from sidecar.messages.importers import Span


def register(server: TranscriptServer) -> None:
    """Serve `textDocument/foldingRange`."""

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    async def folding_range(  # pyright: ignore[reportUnusedFunction]
        params: types.FoldingRangeParams,
    ) -> list[types.FoldingRange]:
        return await server.answer(params.text_document.uri, folding_ranges)


def folding_ranges(view: View) -> list[types.FoldingRange]:
    """Turns and messages of more than one line, by their first lines."""
    spans = [turn.span for turn in view.outline.turns]
    spans += [entry.span for entry in view.entries]
    found = {(fold.start_line, fold.end_line): fold for fold in _folds(view, spans)}
    return [found[lines] for lines in sorted(found)]


def _folds(view: View, spans: list[Span]) -> Iterator[types.FoldingRange]:
    for span in spans:
        first, last = view.places.line(span.start), view.places.line(span.end)
        if first < last:
            yield types.FoldingRange(first, last, kind=types.FoldingRangeKind.Region)
