"""`tools/list`, `tools/call`: the tools of a session's engine, and what a subagent may read of its parent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import DecodeError, Raw, json

from sidecar.engine.loading import EngineNotLoadable, import_target
from sidecar.messages.dialects import dialect_of_family
from sidecar.protocol.base import ABSENT, ToolDefinition
from sidecar.protocol.engine import (
    CallToolsParams,
    CallToolsResult,
    ListToolsParams,
    ListToolsResult,
    TextContent,
)
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.router import Call, Order, Router
from sidecar.server.engines.instance import EngineInstance
from sidecar.server.engines.tools import checked_outcome, needs_model, tool_model
from sidecar.server.failures import EngineFailed
from sidecar.server.methods.lanes import session_lane
from sidecar.server.methods.own_context import OwnContext
from sidecar.server.sidecar import Sidecar
from sidecar.store.admission import is_foreign
from sidecar.store.search import SearchError
from sidecar.store.stored import SessionHead
from sidecar.store.writes import SaveState
from sidecar.tools.contract import ArgumentError, ToolFailed, ToolSession

if TYPE_CHECKING:
    from sidecar.tools.contract import AgentTool, HistoryReader, ToolOutcome


SPENT = "granted"
PARENT = "parent"
OF: dict[str, object] = {
    "type": "string",
    "enum": [PARENT],
    "description": "Look into the conversation that started this one instead, as far as that is granted.",
}
"""The argument by which a child asks for its parent's history."""


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
            head = await sidecar.sessions.head(params.session_id, params.agent_id)
            granted = head is not None and await grant_of(sidecar, head) is not None
            instance = await sidecar.engines.of(params.session_id, params.agent_id)
        elif params.agent_id is not None:
            configured = await sidecar.engines.set_for_agent(params.agent_id)
            instance = await sidecar.registry.take(configured.engine, configured.config)
        else:
            instance = await sidecar.registry.take()
        made = [self._tool(instance, name) for name in instance.engine.tools]
        tools = [tool for tool in made if sidecar.models.exist or not needs_model(tool)]
        return ListToolsResult(
            tools=[
                ToolDefinition(
                    name=tool.name,
                    description=tool.description,
                    input_schema=Raw(
                        with_of(tool.input_schema) if granted and not is_own(tool) else tool.input_schema
                    ),
                )
                for tool in tools
            ]
        )

    async def call(self, params: CallToolsParams, call: Call) -> CallToolsResult:
        """Run a tool; while one waits for a model, later requests of the session go on."""
        sidecar = self._sidecar
        head = await sidecar.sessions.stored_head(params.session_id, params.agent_id)
        instance = await sidecar.engines.of(params.session_id, params.agent_id)
        tool = self._named(instance, params.name)
        arguments = bytes(params.arguments)
        given = b"{}" if arguments in (b"", b"null") else arguments
        of_parent = wants_parent(given)
        grant = None if of_parent is None else await grant_of(sidecar, head)
        if of_parent is not None and grant is None:
            return _failed("This session may not read the conversation that started it, or not any more.")
        read = head if grant is None else grant.parent
        given = of_parent or given
        model = (
            tool_model(sidecar.host, sidecar.models, call, params.session_id) if needs_model(tool) else None
        )
        store = cast("HistoryReader", sidecar.store)
        reader = dialect_of_family(read.message_format, sidecar.store.secrets, read.root)
        context = OwnContext(sidecar, instance, params, call) if grant is None else None
        session = ToolSession(read, store, reader, model, sidecar.searching, context)
        run = _outcome(tool, session, given)
        outcome = await sidecar.runner.run(instance, "tools/call", run, params.session_id)
        if isinstance(outcome, ArgumentError):
            raise InvalidParams(
                f"arguments.{outcome}" if outcome.argument else f"arguments: {outcome}",
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

    def _named(self, instance: EngineInstance, name: str) -> AgentTool:
        """The tool of that name.

        Raises:
            InvalidParams: the engine does not offer it.
        """
        tool = self._tool(instance, name) if name in instance.engine.tools else None
        if tool is None or (needs_model(tool) and not self._sidecar.models.exist):
            names = ", ".join(instance.engine.tools) or "no tools"
            raise InvalidParams(
                f"name: there is no tool {name[:200]!r}",
                path="/name",
                hint=f"tools/list names the tools of the session's engine: {names}",
            )
        return tool

    def _tool(self, instance: EngineInstance, name: str) -> AgentTool:
        """A tool that an engine offers.

        Raises:
            EngineFailed: it cannot be loaded.
        """
        own = instance.own_tools.get(name)
        if own is not None:
            return own
        target = instance.engine.tools[name]
        tool = self._made.get(target)
        if tool is None:
            try:
                tool = self._made[target] = import_target(target)()
            except EngineNotLoadable as error:
                raise EngineFailed(instance.id, "tools/list", str(error)) from None
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


class Grant(NamedTuple):
    """What a child may read of its parent."""

    parent: SessionHead
    tokens: int
    """Tokens that it may be shown in all."""
    spent: int

    @property
    def left(self) -> int:
        """Tokens that it may still be shown."""
        return max(self.tokens - self.spent, 0)


async def grant_of(sidecar: Sidecar, child: SessionHead) -> Grant | None:
    """The grant of a session, `None` where it was not spawned, has ended, or may read nothing."""
    spawn = await sidecar.store.spawn_of(child.ref)
    if spawn is None or spawn.mode != "isolated" or spawn.parent_id is None:
        return None
    parent = await sidecar.store.session(sidecar.host.ref(spawn.parent_id))
    if parent is None or is_foreign(parent.agent_id, spawn.agent_id):
        return None
    tokens = (await sidecar.engines.of(spawn.parent_id, parent.agent_id)).engine.grant_tokens
    if not tokens:
        return None
    kept = await sidecar.store.state(child.ref, SPENT)
    name, spent = json.decode(kept, type=tuple[str, int]) if kept else ("", 0)
    return Grant(parent, tokens, spent if name == spawn.preparation_id else 0)


async def spend(sidecar: Sidecar, child: SessionHead, grant: Grant, text: str) -> bool:
    """Take what is about to be shown off the grant, durably; false where it is more than is left."""
    tokens = sidecar.counter.count(text)
    spawn = await sidecar.store.spawn_of(child.ref)
    if spawn is None or tokens > grant.left:
        return False
    value = json.encode((spawn.preparation_id, grant.spent + tokens))
    await sidecar.store.write(SaveState(child.ref, SPENT, value))
    return True


def wants_parent(arguments: bytes) -> bytes | None:
    """The other arguments where `of` asks for the parent, else `None`."""
    try:
        given = json.decode(arguments, type=dict[str, Raw])
        if bytes(given.pop("of", Raw(b"null"))).strip() != b'"parent"':
            return None
        return json.encode(given)
    except DecodeError:
        return None


def is_own(tool: AgentTool) -> bool:
    """Whether a tool is about the context of its own session alone."""
    return bool(getattr(tool, "is_own", False))


def with_of(schema: bytes) -> bytes:
    """A tool's schema with the argument by which a child asks for its parent's history."""
    members: dict[str, Any] = json.decode(schema)
    return json.encode({**members, "properties": {**members["properties"], "of": OF}})
