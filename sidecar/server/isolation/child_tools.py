"""The engine's own tools in its process: what they are, and what they read."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from msgspec import Raw, json

from sidecar.engine.contract import ContextEngine
from sidecar.engine.loading import import_target
from sidecar.protocol import errors as codes
from sidecar.rpc.call import Call
from sidecar.rpc.errors import InvalidParams, RemoteError
from sidecar.server.contained import Raised, contained
from sidecar.server.isolation.told import told
from sidecar.server.isolation.wire import (
    Completion,
    HostRequest,
    OwnTool,
    Text,
    ToolAnswer,
    ToolAsk,
    ToolCall,
    ToolFacts,
)
from sidecar.server.tool_answers import checked_outcome
from sidecar.server.tool_model import needs_model
from sidecar.store.search import SearchError, SearchQuery, SearchResult
from sidecar.store.stored import SessionRef, StoredMessage, SummaryNode
from sidecar.tools.contract import ArgumentError, ToolFailed, ToolModel, ToolOutcome, ToolSession

if TYPE_CHECKING:
    from sidecar.messages.contract import Dialect
    from sidecar.rpc.peer import Peer
    from sidecar.rpc.router import Router
    from sidecar.store.search import SessionSearch
    from sidecar.tokens.contract import TokenCounter
    from sidecar.tools.contract import AgentTool

T = TypeVar("T")

OURS = "sidecar."
"""Where tools are from that the sidecar runs itself."""


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
                raise told(error)


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
