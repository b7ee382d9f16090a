"""`tools/list` and `tools/call`: what engines offer to the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec import Raw

from sidecar.engine.loading import EngineNotLoadable, import_target
from sidecar.messages.dialects import dialect
from sidecar.protocol.base import ABSENT, ToolDefinition
from sidecar.protocol.tools import (
    CallToolsParams,
    CallToolsResult,
    ListToolsParams,
    ListToolsResult,
    TextContent,
)
from sidecar.rpc.call import Call
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.router import Order, Router
from sidecar.server.failures import EngineFailed, SessionNotFound
from sidecar.server.handlers.lane import session_lane
from sidecar.server.seat import Seat
from sidecar.server.sessions.grants import grant_of, spend, wants_parent, with_of
from sidecar.server.sessions.registry import check_owner
from sidecar.server.sidecar import Sidecar
from sidecar.server.tool_answers import checked_outcome
from sidecar.server.tool_model import needs_model, tool_model
from sidecar.store.search import SearchError
from sidecar.tools.contract import ArgumentError, ToolFailed, ToolSession

if TYPE_CHECKING:
    from sidecar.tools.contract import AgentTool, HistoryReader, ToolOutcome


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the methods around agent tools."""
    handlers = ToolHandlers(sidecar)
    router.request("tools/list", ListToolsParams, handlers.list)
    router.request("tools/call", CallToolsParams, handlers.call, order=Order.EXCLUSIVE, lane=session_lane)


class ToolHandlers:
    """Offers the tools of a session's engine; reads the session from the store, in whatever dialect it is."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._made: dict[str, AgentTool] = {}

    async def list(self, params: ListToolsParams, call: Call) -> ListToolsResult:
        """The tools of the session's engine, of the agent's, or of the connection's."""
        del call
        sidecar = self._sidecar
        granted = False
        if params.session_id is not None:
            head = await sidecar.store.session(sidecar.ref(params.session_id))
            check_owner(head, params.agent_id)
            granted = head is not None and await grant_of(sidecar, head) is not None
            seat = await sidecar.seats.of(params.session_id, params.agent_id)
        elif params.agent_id is not None:
            configured = await sidecar.seats.configured("agent", params.agent_id)
            seat = await sidecar.slot.take(configured.engine, configured.config)
        else:
            seat = await sidecar.slot.take()
        made = [self._tool(seat, name) for name in seat.engine.tools]
        tools = [tool for tool in made if sidecar.models.exist or not needs_model(tool)]
        return ListToolsResult(
            tools=[
                ToolDefinition(
                    name=tool.name,
                    description=tool.description,
                    input_schema=Raw(with_of(tool.input_schema) if granted else tool.input_schema),
                )
                for tool in tools
            ]
        )

    async def call(self, params: CallToolsParams, call: Call) -> CallToolsResult:
        """Run a tool; while one waits for a model, later requests of the session go on."""
        sidecar = self._sidecar
        head = await sidecar.store.session(sidecar.ref(params.session_id))
        if head is None:
            raise SessionNotFound(params.session_id)
        check_owner(head, params.agent_id)
        seat = await sidecar.seats.of(params.session_id, params.agent_id)
        tool = self._named(seat, params.name)
        arguments = bytes(params.arguments)
        given = b"{}" if arguments in (b"", b"null") else arguments
        of_parent = wants_parent(given)
        grant = None if of_parent is None else await grant_of(sidecar, head)
        if of_parent is not None and grant is None:
            return _failed("This session may not read the conversation that started it, or not any more.")
        read = head if grant is None else grant.parent
        given = of_parent or given
        model = tool_model(sidecar, call, params.session_id) if needs_model(tool) else None
        store = cast("HistoryReader", sidecar.store)
        session = ToolSession(read, store, dialect(read.message_format), model, sidecar.searching)
        run = _outcome(tool, session, given)
        outcome = await sidecar.run_engine(seat, "tools/call", run, params.session_id)
        if isinstance(outcome, ArgumentError):
            raise InvalidParams(
                f"arguments.{outcome}" if outcome.argument else f"{outcome}",
                path="/arguments" + (f"/{outcome.argument}" if outcome.argument else ""),
                hint="tools/list has the schema of the arguments",
            )
        if isinstance(outcome, ToolFailed):
            return _failed(str(outcome))
        if grant is not None and not await spend(sidecar, head, grant, outcome.text):
            return _failed(
                f"{grant.left} tokens are left to read of that conversation, and this is more: ask for less."
            )
        return CallToolsResult(
            content=[TextContent(text=outcome.text)],
            structured_content=Raw(outcome.structured) if outcome.structured else ABSENT,
        )

    def _named(self, seat: Seat, name: str) -> AgentTool:
        """The tool of that name.

        Raises:
            InvalidParams: the engine does not offer it.
        """
        tool = self._tool(seat, name) if name in seat.engine.tools else None
        if tool is None or (needs_model(tool) and not self._sidecar.models.exist):
            names = ", ".join(seat.engine.tools) or "no tools"
            raise InvalidParams(
                f"name: there is no tool {name[:200]!r}",
                path="/name",
                hint=f"tools/list names the tools of the session's engine: {names}",
            )
        return tool

    def _tool(self, seat: Seat, name: str) -> AgentTool:
        """A tool that an engine offers.

        Raises:
            EngineFailed: it cannot be loaded.
        """
        own = seat.own_tools.get(name)
        if own is not None:
            return own
        target = seat.engine.tools[name]
        tool = self._made.get(target)
        if tool is None:
            try:
                tool = self._made[target] = import_target(target)()
            except EngineNotLoadable as error:
                raise EngineFailed(seat.id, "tools/list", str(error)) from None
        return tool


def _failed(why: str) -> CallToolsResult:
    return CallToolsResult(content=[TextContent(text=why)], is_error=True)


async def _outcome(
    tool: AgentTool, session: ToolSession, arguments: bytes
) -> ToolOutcome | ArgumentError | ToolFailed:
    """What a tool answers, or how it says that it cannot."""
    try:
        return checked_outcome(await tool.call(session, arguments))
    except (ArgumentError, ToolFailed) as error:
        return error
    except SearchError as error:
        return ToolFailed(f"This cannot be searched for: {error}")
