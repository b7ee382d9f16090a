"""Problems in a transcript: messages that its provider would refuse, and content that is too long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from lsprotocol import types
from lsprotocol.types import DiagnosticSeverity

from sidecar.lsp.language_server import TranscriptServer
from sidecar.lsp.outline import Entry
from sidecar.lsp.view import View
from sidecar.messages.dialects import dialect
from sidecar.rpc.errors import InvalidParams

HUGE_RESULT = 10_000
"""Minimum tokens of a tool result that is reported as huge."""
MOST = 200
"""Maximum diagnostics per document."""
SOURCE = "context-sidecar"
PAUSE_S = 0.3
"""Seconds without a change before a text is checked, so that typing does not trigger checks."""

WORDS = {
    "result-without-call": "This tool result has no call: {}",
    "call-without-result": "This tool call has no result: {}",
    "starts-without-user": "The conversation does not begin with a user message",
}


def register_diagnostics(server: TranscriptServer) -> None:
    """Send `textDocument/publishDiagnostics` whenever a document is opened or changed."""
    tasks: dict[str, asyncio.Task[None]] = {}

    def check(uri: str, pause_s: float = 0.0) -> None:
        shown = server.client_capabilities.text_document
        if shown is None or shown.publish_diagnostics is None:
            return
        if (earlier := tasks.pop(uri, None)) is not None:
            earlier.cancel()
        tasks[uri] = server.connection.peer.loop.create_task(_publish(server, uri, pause_s))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        check(params.text_document.uri, PAUSE_S)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        uri = params.text_document.uri
        if (earlier := tasks.pop(uri, None)) is not None:
            earlier.cancel()
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


async def _publish(server: TranscriptServer, uri: str, pause_s: float) -> None:
    await asyncio.sleep(pause_s)
    budget = server.token_budget
    try:
        found = await server.answer(uri, lambda view: diagnostics(view, budget))
    except InvalidParams:
        return
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found))


def diagnostics(view: View, budget: int) -> list[types.Diagnostic]:
    """The first problems of a transcript, ordered by kind."""
    found = [*_refused(view), *_too_long(view, budget), *_huge(view)]
    return found[:MOST]


def _refused(view: View) -> Iterator[types.Diagnostic]:
    readings = [entry.reading for entry in view.entries]
    for problem in dialect(view.outline.message_format).check(readings):
        words = WORDS.get(problem.rule, f"{problem.rule.replace('-', ' ')}: {{}}").format(problem.detail)
        yield _diagnostic(view, view.entries[problem.index], DiagnosticSeverity.Warning, problem.rule, words)


def _too_long(view: View, budget: int) -> Iterator[types.Diagnostic]:
    total = 0
    for entry in view.entries:
        total += view.tokens(entry)
        if total > budget:
            text = f"From here on the transcript exceeds the window of {budget:,} tokens"
            yield _diagnostic(view, entry, DiagnosticSeverity.Information, "over-budget", text)
            return


def _huge(view: View) -> Iterator[types.Diagnostic]:
    for entry in view.entries:
        if entry.reading.results and (tokens := view.tokens(entry)) >= HUGE_RESULT:
            text = f"This tool result takes {tokens:,} tokens of the window"
            yield _diagnostic(view, entry, DiagnosticSeverity.Information, "huge-result", text)


def _diagnostic(
    view: View, entry: Entry, severity: DiagnosticSeverity, code: str, text: str
) -> types.Diagnostic:
    return types.Diagnostic(view.first_line(entry.span), text, severity=severity, code=code, source=SOURCE)
