"""Loads the engine at the handshake, then serves its members and its own tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec
from msgspec import Raw, json

from sidecar import __version__
from sidecar.engine.calls import (
    AfterTurnRequest,
    AssembleRequest,
    CompactOutcome,
    CompactRequest,
    IncomingMessage,
    IngestOutcome,
    Kept,
    MaintainOutcome,
    PreflightOutcome,
)
from sidecar.engine.contract import ContextEngine
from sidecar.engine.loading import EngineNotLoadable, import_target, load_engine
from sidecar.engine.session import Session
from sidecar.engine.sources import Found
from sidecar.messages.dialects import dialect
from sidecar.protocol import errors as codes
from sidecar.protocol.lifecycle import (
    LATEST,
    ContextEngineCapabilities,
    ContextEngineOptions,
    ExperimentalCapabilities,
    InitializeParams,
    InitializeResult,
    Limits,
    PeerInfo,
    ServerCapabilities,
)
from sidecar.rpc.errors import InvalidParams, RemoteError, RpcError
from sidecar.rpc.router import Call
from sidecar.server.configuration.settings import Limits as Bounds
from sidecar.server.engines.answer_checks import Raised, checked, checked_assembly, contained, described
from sidecar.server.engines.instance import (
    SettingsRefused,
    describe,
    optional_members,
    stores_plainly,
    validated_settings,
)
from sidecar.server.engines.proxy.child_session import ChildHost, ChildSession, Line, serving
from sidecar.server.engines.proxy.wire import (
    AssemblyAnswer,
    Completion,
    Description,
    EngineCall,
    EngineSettings,
    HostRequest,
    Item,
    MaintainRequest,
    Nothing,
    OwnTool,
    PrepareSpawnRequest,
    SpawnEndedRequest,
    Text,
    ToolAnswer,
    ToolAsk,
    ToolCall,
    ToolFacts,
    Unpacker,
    to_wire_error,
)
from sidecar.server.engines.tools import checked_outcome, needs_model
from sidecar.server.failures import without_paths
from sidecar.store.search import SearchError, SearchQuery, SearchResult
from sidecar.store.stored import SessionRef, StoredMessage, SummaryNode
from sidecar.tokens.choose import counter
from sidecar.tools.contract import ArgumentError, ToolFailed, ToolModel, ToolOutcome, ToolSession

if TYPE_CHECKING:
    from sidecar.messages.contract import Dialect
    from sidecar.rpc.peer import Peer
    from sidecar.rpc.router import Router
    from sidecar.store.search import SessionSearch
    from sidecar.tokens.contract import TokenCounter
    from sidecar.tools.contract import AgentTool


R = TypeVar("R")
Work = Callable[[Session, bytes], Coroutine[object, object, object]]

T = TypeVar("T")

OURS = "sidecar."
"""Where tools are from that the sidecar runs itself."""


class EngineApplication:
    """What the lifecycle drives; see `sidecar.server.lifecycle.Application`."""

    def __init__(
        self, router: Router, peer: Peer, engine_id: str, target: str, places: tuple[str, ...]
    ) -> None:
        self._router = router
        self._peer = peer
        self._found = Found(engine_id, target, "path", places=places)
        self._engine: ContextEngine | None = None

    async def initialize(self, params: InitializeParams) -> InitializeResult:
        """The engine is loaded and its settings are validated before this answers.

        Raises:
            RpcError: 1001, with what is wrong.
        """
        given = params.initialization_options
        options = (given.context_engine if given else None) or ContextEngineOptions()
        config = json.decode(bytes(options.config) or b"{}", type=EngineSettings)
        count = counter(config.counter)
        reader = dialect(options.message_format)
        made = await contained(self._make(options, config, count, reader))
        if isinstance(made, Raised):
            raise RpcError(codes.ENGINE_UNAVAILABLE, without_paths(_unavailable(made.error, self._found.id)))
        self._engine, tools = made
        EngineMembers(self._peer, self._engine, tools, reader, count).register(self._router)
        return _answer(options, self._engine, self._router.methods)

    async def close(self) -> None:
        """Release the engine."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await contained(engine.dispose())

    async def _make(
        self, options: ContextEngineOptions, config: EngineSettings, count: TokenCounter, reader: Dialect
    ) -> tuple[ContextEngine, ChildTools]:
        kind = load_engine(self._found)
        settings = validated_settings(kind, config.settings)
        capabilities = frozenset(options.host_capabilities or ())
        host = ChildHost(self._peer, self._found.id, capabilities, count, settings, config.recall_share)
        engine = kind(host)
        return engine, ChildTools(engine, self._peer, reader, count)


class EngineMembers:
    """Serves the requests that call members of the engine."""

    def __init__(
        self, peer: Peer, engine: ContextEngine, tools: ChildTools, reader: Dialect, count: TokenCounter
    ) -> None:
        self._peer = peer
        self._tools = tools
        self._engine = engine
        self._dialect = reader
        self._counter = count
        self._unpacker = Unpacker(reader)

    def register(self, router: Router) -> None:
        """Serve them."""
        router.request("engine/describe", Nothing, self._describe)
        router.request("engine/ping", Nothing, _pong)
        self._tools.register(router)
        members: dict[str, Work] = {
            "assemble": self._assemble,
            "ingest": self._ingest,
            "compact": self._compact,
            "afterTurn": self._after_turn,
            "preflight": self._preflight,
            "maintain": self._maintain,
            "prepareSpawn": self._prepare_spawn,
            "subagentEnded": self._spawn_ended,
        }
        for name, work in members.items():
            router.request(f"engine/{name}", EngineCall, self._handler(work))

    def _handler(self, work: Work) -> Callable[[EngineCall, Call], Coroutine[object, object, Raw]]:
        async def handle(params: EngineCall, call: Call) -> Raw:
            del call
            serving.set(params.session.handle)
            session = ChildSession(Line(self._peer, params.session, self._unpacker), self._counter)
            outcome = await contained(work(session, bytes(params.request)))
            if isinstance(outcome, Raised):
                raise to_wire_error(outcome.error)
            try:
                return Raw(json.encode(outcome))
            except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
                raise to_wire_error(error) from None

        return handle

    def _describe(self, params: Nothing, call: Call) -> Description:
        del params, call
        kind = type(self._engine)
        return Description(
            own=list(optional_members(kind)),
            stores=stores_plainly(kind) and kind.display is ContextEngine.display,
            tools=dict(kind.tools),
            own_tools=self._tools.described(),
            buffers=kind.buffers_episodes,
            shortens=kind.shortens_results,
            shared_state=None if kind.shared_state is None else list(kind.shared_state),
            payload_tokens=self._engine.payload_tokens,
            grant_tokens=self._engine.grant_tokens,
        )

    async def _assemble(self, session: Session, request: bytes) -> AssemblyAnswer:
        asked = json.decode(request, type=AssembleRequest)
        assembly = checked_assembly(await self._engine.assemble(session, asked), asked.budget)
        return AssemblyAnswer(
            [
                Item(item.entry.message_id, item.kind) if isinstance(item, Kept) else Item(made=item)
                for item in assembly.items
            ],
            assembly.system_prompt_addition,
            assembly.user_message_append,
        )

    async def _ingest(self, session: Session, request: bytes) -> object:
        message = json.decode(request, type=IncomingMessage)
        outcome = checked(await self._engine.ingest(session, message), IngestOutcome)
        shown = self._engine.display(message.raw, self._dialect.glance(message.raw).role, self._dialect)
        if shown is None or outcome.display_message is not None:
            return outcome
        return msgspec.structs.replace(outcome, display_message=shown)

    async def _compact(self, session: Session, request: bytes) -> object:
        outcome = await self._engine.compact(session, json.decode(request, type=CompactRequest))
        return checked(outcome, CompactOutcome)

    async def _after_turn(self, session: Session, request: bytes) -> Nothing:
        await self._engine.after_turn(session, json.decode(request, type=AfterTurnRequest))
        return Nothing()

    async def _preflight(self, session: Session, request: bytes) -> object:
        outcome = await self._engine.preflight(session, json.decode(request, type=AssembleRequest))
        return checked(outcome, PreflightOutcome)

    async def _maintain(self, session: Session, request: bytes) -> object:
        outcome = await self._engine.maintain(session, json.decode(request, type=MaintainRequest).budget)
        return checked(outcome, MaintainOutcome)

    async def _prepare_spawn(self, session: Session, request: bytes) -> Nothing:
        asked = json.decode(request, type=PrepareSpawnRequest)
        await self._engine.prepare_spawn(session if asked.parent else None, asked.spawn)
        return Nothing()

    async def _spawn_ended(self, session: Session, request: bytes) -> Nothing:
        del session
        asked = json.decode(request, type=SpawnEndedRequest)
        await self._engine.spawn_ended(asked.spawn, asked.reason)
        return Nothing()


def _unavailable(error: BaseException, engine_id: str) -> str:
    if isinstance(error, EngineNotLoadable | SettingsRefused):
        return str(error)
    return f"{engine_id} does not start: {described(error)}"


def _pong(params: Nothing, call: Call) -> Nothing:
    del call
    return params


def _answer(options: ContextEngineOptions, engine: ContextEngine, methods: list[str]) -> InitializeResult:
    bounds = Bounds()
    return InitializeResult(
        capabilities=ServerCapabilities(
            experimental=ExperimentalCapabilities(
                context_engine=ContextEngineCapabilities(
                    protocol_version=LATEST,
                    engine=describe(engine.info, optional_members(type(engine))),
                    methods=methods,
                    tools=list(engine.tools),
                    message_formats=[options.message_format],
                    limits=Limits(
                        max_message_bytes=bounds.max_message_bytes,
                        max_in_flight=bounds.max_in_flight,
                        max_parked_bytes=bounds.max_parked_bytes,
                        host_request_timeout_ms=bounds.host_request_timeout_ms,
                        default_token_budget=bounds.default_token_budget,
                    ),
                )
            )
        ),
        server_info=PeerInfo(name="context-sidecar", version=__version__),
    )


class ChildTools:
    """Makes the tools when the engine is loaded, and runs them."""

    def __init__(self, engine: ContextEngine, peer: Peer, reader: Dialect, count: TokenCounter) -> None:
        """Load them.

        Raises:
            EngineNotLoadable: one cannot be imported.
        """
        self._peer = peer
        self._dialect = reader
        self._counter = count
        targets = type(engine).tools.items()
        self._tools: dict[str, AgentTool] = {
            name: import_target(target)() for name, target in targets if not target.startswith(OURS)
        }

    def register(self, router: Router) -> None:
        """Serve them."""
        router.request("engine/callTool", ToolCall, self._call)

    def described(self) -> list[OwnTool]:
        """What the model is told of them."""
        return [
            OwnTool(name, tool.description, tool.input_schema.decode(), needs_model(tool))
            for name, tool in self._tools.items()
        ]

    async def _call(self, params: ToolCall, call: Call) -> ToolAnswer:
        del call
        tool = self._tools.get(params.name)
        if tool is None:
            raise InvalidParams(f"there is no tool {params.name[:100]!r}", path="/name")
        reader = ToolReader(self._peer, params.session)
        model = ToolModel(reader.ask_model, self._counter.count) if params.session.has_model else None
        searching = cast("SessionSearch", Searching(reader))
        session = ToolSession(params.session.head, reader, self._dialect, model, searching)
        outcome = await contained(_checked(tool.call(session, bytes(params.arguments))))
        if not isinstance(outcome, Raised):
            return ToolAnswer(outcome.text, structured=outcome.structured)
        match outcome.error:
            case ArgumentError() as error:
                return ToolAnswer(str(error), argument=error.argument)
            case ToolFailed() as error:
                return ToolAnswer(str(error), failed=True)
            case SearchError() as error:
                return ToolAnswer(f"This cannot be searched for: {error}", failed=True)
            case error:
                raise to_wire_error(error)


class ToolReader:
    """The session that a tool reads; see `sidecar.tools.contract.HistoryReader`."""

    def __init__(self, peer: Peer, facts: ToolFacts) -> None:
        self._peer = peer
        self._facts = facts

    async def messages(self, ref: SessionRef, first: int, last: int) -> Sequence[StoredMessage]:
        """The messages at positions `first` to `last`."""
        del ref
        return await self._ask("tool/messages", list[StoredMessage], first=first, last=last)

    async def turn_start(self, ref: SessionRef, turn: int) -> int | None:
        """The position of the first message of a turn."""
        del ref
        return await self._ask("tool/turnStart", cast("type[int | None]", int | None), turn=turn)

    async def message(self, ref: SessionRef, message_id: str) -> StoredMessage | None:
        """One message by its id."""
        del ref
        kind = cast("type[StoredMessage | None]", StoredMessage | None)
        return await self._ask("tool/message", kind, message_id=message_id)

    async def search(self, ref: SessionRef, query: SearchQuery) -> SearchResult:
        """The messages that match."""
        del ref
        return await self.look("tool/search", query)

    async def summaries(self, ref: SessionRef, *, texts: bool = True) -> Sequence[SummaryNode]:
        """The session's summaries."""
        del ref
        return await self._ask("tool/summaries", list[SummaryNode], texts=texts)

    async def summary_nodes(self, ref: SessionRef, node_ids: Sequence[str]) -> Sequence[SummaryNode]:
        """The summaries of these ids."""
        del ref
        return await self._ask("tool/summaryNodes", list[SummaryNode], node_ids=list(node_ids))

    async def look(self, method: str, query: SearchQuery) -> SearchResult:
        """What the sidecar finds.

        Raises:
            SearchError: the query cannot be answered.
        """
        params = HostRequest(self._facts.handle, Raw(json.encode(query)))
        try:
            return await self._peer.request(method, params, SearchResult, timeout_ms=0)
        except RemoteError as error:
            if error.code == codes.INVALID_PARAMS:
                raise SearchError(error.message) from None
            raise

    async def ask_model(
        self, messages: Sequence[tuple[str, str]], system_prompt: str, max_tokens: int
    ) -> str:
        """The text of the model that the sidecar asks."""
        params = Completion(self._facts.handle, "query", list(messages), system_prompt, max_tokens)
        return (await self._peer.request("tool/complete", params, Text, timeout_ms=0)).text or ""

    async def _ask(self, method: str, kind: type[T], **members: object) -> T:
        params = ToolAsk(self._facts.handle, **members)  # pyright: ignore[reportArgumentType]
        return await self._peer.request(method, params, kind, timeout_ms=0)


class Searching:
    """Finds by meaning too, where the sidecar does."""

    def __init__(self, reader: ToolReader) -> None:
        self._reader = reader

    async def search(self, ref: SessionRef, query: SearchQuery) -> SearchResult:
        """The messages that match, or mean what is asked."""
        del ref
        return await self._reader.look("tool/find", query)


async def _checked(work: Awaitable[object]) -> ToolOutcome:
    return checked_outcome(await work)
