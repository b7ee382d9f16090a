"""The client for Python runtimes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeVar, Unpack

from msgspec import Raw
from msgspec.structs import replace

from sidecar import __version__
from sidecar.client.connection import Connection
from sidecar.client.errors import ClientClosed, UnexpectedAnswer
from sidecar.client.host_callbacks import HostCallbacks, declared, serve_callbacks, take_stderr
from sidecar.client.messages import (
    AnswerMemory,
    AssembledContext,
    Basis,
    ExportedPage,
    Message,
    StoredMessage,
    apply_edits,
    encode_messages,
    encode_object,
)
from sidecar.client.requests import AboutSession, Requests
from sidecar.protocol.assemble import AssembleContextParams
from sidecar.protocol.base import ABSENT, EngineInfo, MessageFormat
from sidecar.protocol.lifecycle import (
    LATEST,
    ContextEngineCapabilities,
    ContextEngineOptions,
    HostInfo,
    InitializationOptions,
    InitializedParams,
    InitializeParams,
    InitializeResult,
    PeerInfo,
    SetTraceParams,
)
from sidecar.protocol.session import (
    ExportSessionParams,
    ListSessionParams,
    ListSessionResult,
    SessionEntry,
    SummariesSessionParams,
    SummariesSessionResult,
)
from sidecar.rpc.router import Router

T = TypeVar("T")

STATE_DIR = "CONTEXT_SIDECAR_STATE_DIR"
DEFAULT_COMMAND = ("context-sidecar", "serve")
DEFAULT_TIMEOUT = 180.0
"""Time limit of a request in seconds; longer than the sidecar's limits, so that its answer comes first."""
_CLOSED = "the client is not open: use `async with`, or await open()"


class SidecarClient(Requests):
    """Owns one sidecar process and talks to it.

    `async with SidecarClient.start(engine="full") as client: ...` starts the process, performs the handshake,
    and ends the process at the end of the block. Requests can be cancelled like any coroutine, and raise the
    exceptions of `sidecar.client.errors`. A process that ends is not restarted: create a new client.
    """

    def __init__(
        self,
        command: Sequence[str],
        options: ContextEngineOptions,
        callbacks: HostCallbacks,
        *,
        timeout_s: float,
        env: Mapping[str, str],
        cwd: str | Path | None,
    ) -> None:
        self._command = list(command)
        self._options = options
        self._callbacks = callbacks
        self._timeout_s = timeout_s
        self._env = env
        self._cwd = cwd
        self._connection: Connection | None = None
        self._welcome: InitializeResult | None = None
        self._answers: AnswerMemory | None = None
        """Set if the client requests assemble answers as edits."""

    @classmethod
    def start(
        cls,
        command: Sequence[str] = DEFAULT_COMMAND,
        *,
        engine: str | None = None,
        message_format: MessageFormat = "openai",
        state_dir: str | Path | None = None,
        namespace: str | None = None,
        host: HostInfo | str | None = None,
        host_capabilities: Iterable[str] = (),
        config: Mapping[str, object] | None = None,
        deltas: bool = False,
        timeout_s: float = DEFAULT_TIMEOUT,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        **callbacks: Unpack[HostCallbacks],
    ) -> Self:
        """Create a client; its sidecar starts when the client is entered or opened.

        Callbacks that answer requests declare their capability; `host_capabilities` declares further ones.
        With `deltas`, repeated assemble answers travel as edits, but are still returned as whole lists.
        `timeout_s` limits each request, in seconds; 0 means no limit. `env` extends the environment.
        """
        capabilities = [*declared(callbacks), *host_capabilities]
        if deltas:
            capabilities.append("assembleDelta")
        options = ContextEngineOptions(
            protocol_version=LATEST,
            host=HostInfo(id=host) if isinstance(host, str) else host,
            host_capabilities=list(dict.fromkeys(capabilities)),
            message_format=message_format,
            engine=engine,
            namespace=namespace,
            config=ABSENT if config is None else encode_object(config),
        )
        where = {} if state_dir is None else {STATE_DIR: str(state_dir)}
        client = cls(command, options, callbacks, timeout_s=timeout_s, env={**(env or {}), **where}, cwd=cwd)
        client._answers = AnswerMemory() if deltas else None
        return client

    async def open(self) -> None:
        """Start the process and perform the handshake.

        Raises:
            SidecarNotStarted: the command cannot be run.
            SidecarExited: the process ended before it answered.
            EngineUnavailable: the selected engine cannot serve.
            StoreUnavailable: the store cannot be opened.
            InvalidParams: an option or a setting is wrong.
        """
        if self._connection is not None:
            return
        router = Router()
        serve_callbacks(router, self._callbacks)
        connection = await Connection.open(
            self._command, router, on_stderr=take_stderr(self._callbacks), env=self._env, cwd=self._cwd
        )
        self._connection = connection
        try:
            self._welcome = await self.request("initialize", self._greeting(), InitializeResult)
        except BaseException:
            await self.close()
            raise
        connection.notify("initialized", InitializedParams())

    async def close(self) -> None:
        """Shut the process down, or kill it if it does not comply."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def capabilities(self) -> ContextEngineCapabilities:
        """The capabilities that the sidecar declared at the handshake."""
        if self._welcome is None:
            raise ClientClosed(_CLOSED)
        return self._welcome.capabilities.experimental.context_engine

    @property
    def engine(self) -> EngineInfo:
        """The engine that serves this connection."""
        return self.capabilities.engine

    @property
    def server_info(self) -> PeerInfo:
        """Name and version of the sidecar."""
        if self._welcome is None:
            raise ClientClosed(_CLOSED)
        return self._welcome.server_info

    @property
    def message_format(self) -> MessageFormat:
        """The message format of this connection."""
        return self._options.message_format

    @property
    def alive(self) -> bool:
        """True while the process runs and the client is open."""
        return self._connection is not None and self._connection.alive

    @property
    def pid(self) -> int | None:
        """Process id of the sidecar, while the client is open."""
        return self._connection.pid if self._connection is not None else None

    async def request(
        self, method: str, params: object, result_type: type[T], *, timeout_s: float | None = None
    ) -> T:
        """Send any request and return its result, decoded as `result_type`.

        `timeout_s` is in seconds, by default the client's own limit; 0 means no limit.

        Raises:
            RequestFailed: the sidecar answered with an error; the subclass tells which.
            RequestTimedOut: no answer arrived in time.
            UnexpectedAnswer: the result does not match `result_type`.
            SidecarExited: the process has ended or has closed its output.
            ClientClosed: the client is not open.
        """
        connection = self._connection
        if connection is None:
            raise ClientClosed(_CLOSED)
        limit = self._timeout_s if timeout_s is None else timeout_s
        return await connection.request(method, params, result_type, limit)

    def notify(self, method: str, params: object = None) -> None:
        """Send any notification."""
        if self._connection is None:
            raise ClientClosed(_CLOSED)
        self._connection.notify(method, params)

    def set_trace(self, value: Literal["off", "messages", "verbose"]) -> None:
        """Set how much the sidecar reports about its work."""
        self.notify("$/setTrace", SetTraceParams(value=value))

    async def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the exit code; `None` if the process still runs after `timeout_s` seconds."""
        if self._connection is None:
            raise ClientClosed(_CLOSED)
        return await self._connection.wait(timeout_s)

    async def assemble(
        self,
        session_id: str,
        token_budget: int | None = None,
        messages: Iterable[Message] | None = None,
        prompt: str | None = None,
        *,
        model: str | None = None,
        available_tools: Iterable[str] | None = None,
        citations_mode: str | None = None,
        projection: Literal["codex"] | None = None,
        **about: Unpack[AboutSession],
    ) -> AssembledContext:
        """Assemble the context for the model, within `token_budget` tokens.

        Raises:
            ContextOverflow: not even the smallest valid context fits; `required` is the budget that it needs.
            SessionNotFound: the session is unknown, and `messages` is `None`.
        """
        basis = self._answers.basis(session_id) if self._answers is not None else None
        params = AssembleContextParams(
            session_id=session_id,
            token_budget=token_budget,
            messages=None if messages is None else encode_messages(messages),
            prompt=prompt,
            model=model,
            available_tools=None if available_tools is None else list(available_tools),
            citations_mode=citations_mode,
            previous_result_id=basis.result_id if basis is not None else None,
            projection=projection,
            **about,
        )
        answer = await self.request("context/assemble", params, AssembledContext)
        return self._whole(session_id, answer, basis)

    async def receipts(self, session_id: str, **about: Unpack[AboutSession]) -> list[Raw]:
        """Receipts of the newest compactions as JSON objects, oldest first."""
        params = SummariesSessionParams(session_id=session_id, **about)
        return (await self.request("session/summaries", params, SummariesSessionResult)).receipts or []

    async def sessions(
        self, *, agent_id: str | None = None, page_size: int | None = None
    ) -> AsyncIterator[SessionEntry]:
        """The sessions of the namespace, latest change first; pages are fetched as needed."""
        cursor: str | None = None
        while True:
            params = ListSessionParams(limit=page_size, cursor=cursor, agent_id=agent_id)
            page = await self.request("session/list", params, ListSessionResult)
            for entry in page.sessions:
                yield entry
            cursor = page.next_cursor
            if cursor is None:
                return

    async def export(self, session_id: str, **about: Unpack[AboutSession]) -> AsyncIterator[ExportedPage]:
        """The stored messages page by page, oldest first, byte for byte.

        Raises:
            SessionNotFound: the session is unknown.
        """
        cursor: str | None = None
        while True:
            params = ExportSessionParams(session_id=session_id, cursor=cursor, **about)
            page = await self.request("session/export", params, ExportedPage)
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    async def stored_messages(
        self, session_id: str, **about: Unpack[AboutSession]
    ) -> AsyncIterator[StoredMessage]:
        """The stored messages one by one, in the order of `export`."""
        async for page in self.export(session_id, **about):
            for message in page.messages:
                yield message

    def _whole(self, session_id: str, answer: AssembledContext, basis: Basis | None) -> AssembledContext:
        if answer.edits is not None and answer.messages is None:
            if basis is None:
                raise UnexpectedAnswer("the sidecar answered with edits although none were requested")
            answer = replace(answer, messages=apply_edits(basis.messages, answer.edits), edits=None)
        messages: list[Raw] | None = answer.messages
        if messages is None:
            raise UnexpectedAnswer("the assemble result has neither messages nor edits")
        if self._answers is not None:
            kept = Basis(answer.result_id, [Raw(bytes(message)) for message in messages])
            self._answers.keep(session_id, kept)
        return answer

    def _greeting(self) -> InitializeParams:
        progress = "on_progress" in self._callbacks
        return InitializeParams(
            process_id=os.getpid(),
            client_info=PeerInfo(name="context-sidecar-python", version=__version__),
            capabilities=encode_object({"window": {"workDoneProgress": progress}}),
            initialization_options=InitializationOptions(context_engine=self._options),
        )
