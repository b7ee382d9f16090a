"""The pygls language server, with its transport replaced by our `Peer`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, NoReturn, TypeVar, cast

from cattrs import Converter
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

from sidecar import __version__
from sidecar.lsp.attach import Stored
from sidecar.lsp.documents import SHORT, TranscriptDocument, TranscriptWorkspace
from sidecar.lsp.view import View
from sidecar.rpc.peer import Peer

T = TypeVar("T")

DEFAULT_TOKEN_BUDGET = 128_000

Handler = Callable[[Any], object]
"""Receives the decoded params of a method."""


class PeerProtocol(LanguageServerProtocol):
    """The connection as pygls sees it: it holds the workspace, while a peer reads and writes.

    pygls' own reader loses members of nested objects, and its writer blocks; neither is ever started.
    """

    peer: Peer

    def __init__(self, server: LanguageServer, converter: Converter) -> None:
        super().__init__(server, converter)
        self._requests: set[asyncio.Task[None]] = set()

    @property
    def handlers(self) -> dict[str, Handler]:
        """The handlers of features, by method."""
        return cast("dict[str, Handler]", self.fm.features)  # pyright: ignore[reportUnknownMemberType]

    @property
    def builtin_handlers(self) -> dict[str, Handler]:
        """The handlers of pygls itself, which call the feature handlers."""
        return cast("dict[str, Handler]", self.fm.builtin_features)  # pyright: ignore[reportUnknownMemberType]

    @property
    def has_commands(self) -> bool:
        """Whether `workspace/executeCommand` has anything to execute."""
        return bool(cast("dict[str, Handler]", self.fm.commands))  # pyright: ignore[reportUnknownMemberType]

    def structure(self, value: object, kind: type[T]) -> T:
        """Convert a JSON value to a protocol type.

        Raises:
            Exception: the value does not match; `cattrs.transform_error` says where.
        """
        return self._converter.structure(value, kind)

    def unstructure(self, value: object) -> object:
        """Convert a protocol value to JSON form."""
        return cast(object, self._converter.unstructure(value))

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """The answer of pygls, with a workspace whose documents are transcripts."""
        result = yield from super().lsp_initialize(params)
        encoding = self.server_capabilities.position_encoding or types.PositionEncodingKind.Utf16
        self._workspace = TranscriptWorkspace(
            params.root_uri, types.TextDocumentSyncKind.Incremental, params.workspace_folders, encoding
        )
        return result

    def notify(self, method: str, params: Any | None = None) -> None:
        """Send a notification."""
        self.peer.notify(method, self.unstructure(params))

    def send_request(
        self,
        method: str,
        params: Any | None = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: int | str | None = None,
    ) -> Future[Any]:
        """Send a request; returns a future of the result. The peer chooses the id, ignoring `msg_id`."""
        del msg_id
        future: Future[Any] = Future()
        if callback is not None:
            future.add_done_callback(lambda done: None if done.exception() else callback(done.result()))
        task = self.peer.loop.create_task(self._ask(method, params, future))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)
        return future

    def _send_data(self, data: Any) -> NoReturn:
        del data
        raise AssertionError("everything is sent through the peer")

    async def _ask(self, method: str, params: object, future: Future[Any]) -> None:
        try:
            result = await self.peer.request(method, self.unstructure(params), object)
            shape = self.get_result_type(method)
            if shape is not None:
                answer = self.structure({"id": 0, "jsonrpc": "2.0", "result": result}, shape)
                result = cast(object, answer.result)
        except Exception as problem:
            future.set_exception(problem)
        else:
            future.set_result(result)


class TranscriptServer(LanguageServer):
    """A language server for transcripts; features register themselves with its `feature` decorator."""

    def __init__(self, peer: Peer, stored: Stored | None = None) -> None:
        self.stored = stored
        """The sidecar's sessions, if there is a sidecar behind the connection."""
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            "context-sidecar", __version__, protocol_cls=PeerProtocol
        )
        self.connection.peer = peer

    @property
    def token_budget(self) -> int:
        """Context window in tokens, against which transcripts are measured."""
        return self.stored.token_budget if self.stored else DEFAULT_TOKEN_BUDGET

    @property
    def connection(self) -> PeerProtocol:
        """The protocol, with its actual type."""
        return cast("PeerProtocol", self.protocol)

    def transcript(self, uri: str) -> TranscriptDocument:
        """The document with that URI: the editor's version if it is open, else the file on disk.

        Raises:
            InvalidParams: it is not open and cannot be read.
        """
        return cast("TranscriptWorkspace", self.workspace).transcript(uri)

    async def answer(self, uri: str, make: Callable[[View], T]) -> T:
        """The value that `make` computes from the document, in a thread if the document is long.

        Raises:
            InvalidParams: it is not open and cannot be read.
        """
        view = await self.transcript(uri).view()
        if view.text.size <= SHORT:
            return make(view)
        return await self.connection.peer.loop.run_in_executor(None, make, view)
