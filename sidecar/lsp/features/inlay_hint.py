"""Shows behind each message what it takes of a window."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.outline import Entry
from sidecar.lsp.view import View


def register(server: TranscriptServer) -> None:
    """Serve `textDocument/inlayHint`."""

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hint(  # pyright: ignore[reportUnusedFunction]
        params: types.InlayHintParams,
    ) -> list[types.InlayHint]:
        return await server.answer(
            params.text_document.uri, lambda view: list(inlay_hints(view, params.range))
        )


def inlay_hints(view: View, wanted: types.Range) -> Iterator[types.InlayHint]:
    """The tokens of each message that a range touches, at the end of its first line."""
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
