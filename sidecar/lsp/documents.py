"""The client's documents, and the views computed from their current text."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from lsprotocol import types
from pygls.workspace import TextDocument, Workspace

from sidecar.lsp.outline import Lines
from sidecar.lsp.view import View
from sidecar.messages.importers import Text
from sidecar.rpc.errors import InvalidParams

SHORT = 256 * 1024
"""Maximum bytes of a text parsed on the event loop; longer ones are parsed in a thread."""


class TranscriptDocument(TextDocument):
    """A text that editors change incrementally, stored in UTF-8.

    pygls also splits lines at characters such as U+2028, unlike editors, and would misplace edits after them.
    """

    def __init__(
        self, uri: str, source: str | None, version: int | None, language_id: str | None, encoding: str
    ) -> None:
        super().__init__(uri, None, version, language_id)
        self._encoding = encoding
        self._text = None if source is None else Text.of(source.encode(errors="replace"))
        self._view: asyncio.Future[View] | None = None

    @property
    def text(self) -> Text:
        """The text in UTF-8.

        Raises:
            OSError: the document is not open, and cannot be read from disk.
        """
        if self._text is None:
            self._text = Text.of(Path(self.path).read_bytes())
        return self._text

    @property
    def source(self) -> str:
        """The text as characters."""
        return self.text.data.decode(errors="replace")

    @property
    def lines(self) -> list[str]:
        """The lines of the text, each with its line break."""
        return [line.decode(errors="replace") for line in self.text.data.splitlines(keepends=True)]

    async def view(self) -> View:
        """The view of the current text; a long text is parsed without blocking the event loop.

        Raises:
            OSError: the document is not open, and cannot be read from disk.
        """
        if self._view is None:
            loop = asyncio.get_running_loop()
            if self.text.size <= SHORT:
                self._view = loop.create_future()
                self._view.set_result(View(self.uri, self.text, self._encoding))
            else:
                self._view = loop.run_in_executor(None, View, self.uri, self.text, self._encoding)
        return await asyncio.shield(self._view)

    def apply_change(self, change: types.TextDocumentContentChangeEvent) -> None:
        """Replace part of the text, at a cost proportional to that part, or all of it."""
        new, text = change.text.encode(errors="replace"), self.text
        if isinstance(change, types.TextDocumentContentChangePartial):
            places = Lines(text, self._encoding)
            start = places.byte(change.range.start.line, change.range.start.character)
            end = places.byte(change.range.end.line, change.range.end.character)
            self._text = text.edited(start, max(start, end), new)
        else:
            self._text = Text.of(new, text.kept)
        self._view = None

    @property
    def encoding(self) -> str:
        """The units in which the client counts characters: `utf-8`, `utf-16` or `utf-32`."""
        return self._encoding


class TranscriptWorkspace(Workspace):
    """The documents open in an editor."""

    def transcript(self, uri: str) -> TranscriptDocument:
        """The document with that URI, with its text loaded.

        Raises:
            InvalidParams: it is not open and cannot be read.
        """
        document = cast("TranscriptDocument", self.get_text_document(uri))
        try:
            document.text  # noqa: B018  loads it
        except OSError:
            raise _not_open() from None
        return document

    def update_text_document(
        self,
        text_doc: types.VersionedTextDocumentIdentifier,
        change: types.TextDocumentContentChangeEvent,
    ) -> None:
        """Apply one change.

        Raises:
            InvalidParams: the document is not open.
        """
        if unquote(text_doc.uri) not in self.text_documents:
            raise _not_open()
        super().update_text_document(text_doc, change)

    def _create_text_document(
        self,
        doc_uri: str,
        source: str | None = None,
        version: int | None = None,
        language_id: str | None = None,
    ) -> TranscriptDocument:
        encoding: Any = self.position_encoding
        return TranscriptDocument(
            doc_uri, source, version, language_id, str(getattr(encoding, "value", encoding))
        )


def _not_open() -> InvalidParams:
    return InvalidParams("textDocument.uri: the document is not open", path="/textDocument/uri")
