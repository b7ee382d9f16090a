# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
"""`SidecarProvider`: engines of the sidecar for agents of the Microsoft Agent Framework.

Before each call of the model the sidecar chooses what it sees; the session of the framework stays whole.
Messages that are kept are the very objects of the call, others are made of what the sidecar wrote.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Unpack, cast
from uuid import uuid4

from agent_framework import (
    AgentSession,
    ChatContext,
    ChatMiddleware,
    Content,
    ContextProvider,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    Message,
    SessionContext,
    SupportsAgentRun,
    SupportsChatGetResponse,
)

from sidecar.integrations.agent_context import (
    NOTHING_FOUND,
    AgentContext,
    AgentOptions,
    Run,
    current_run,
    dumped,
    on_this_loop,
    restored,
    running,
)
from sidecar.protocol.runtime import CompleteRuntimeParams

_Block = dict[str, Any]


class SidecarProvider(ContextProvider):
    """Lets an engine of the sidecar decide what the model sees; the session is that of the framework."""

    def __init__(self, *, source_id: str = "context-sidecar", **options: Unpack[AgentOptions]) -> None:
        super().__init__(source_id)
        self._context = AgentContext("agent-framework", "anthropic", options)
        self.sidecar = self._context.sidecar
        """The process that serves this agent."""

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Offer the tools of the engine, and stand between the run and its model."""
        del state
        run = _run(agent, session)
        context.metadata[self.source_id] = run
        context.extend_middleware(self.source_id, [_Choice(self._context, run), _Marker(run)])
        found = await self.sidecar.ask_async(self._context.tool_definitions, "tools/list")
        context.extend_tools(
            self.source_id,
            [_tool(self._context, run, t.name, t.description, bytes(t.input_schema)) for t in found or ()],
        )

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Keep the turn that has ended."""
        del agent, session, state
        run = context.metadata.get(self.source_id)
        if run is None or context.response is None:
            return
        turn = [
            encoded(m) for m in (*context.input_messages, *context.response.messages) if not _is_system(m)
        ]
        work = self._context.committing(run, uuid4().hex, turn)
        await self.sidecar.ask_async(work, "context/commitTurn")


class _Marker(FunctionMiddleware):
    """Runs that a tool starts are children of the run that calls it."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def process(
        self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        """Run the tool."""
        del context
        with running(self._run.session):
            await call_next()


class _Choice(ChatMiddleware):
    """Chooses what the model sees."""

    def __init__(self, context: AgentContext, run: Run) -> None:
        self._context = context
        self._run = run

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Call the model with what the sidecar has chosen."""
        held = context.session is not None and context.session.service_session_id is not None
        if not held:  # Otherwise the service has the history, and only what is new goes there.
            await self._choose(context)
        await call_next()

    async def _choose(self, context: ChatContext) -> None:
        system = [message for message in context.messages if _is_system(message)]
        messages = [message for message in context.messages if not _is_system(message)]
        raw = [encoded(message) for message in messages]
        complete = on_this_loop(_completed_by(context.client)) if self._context.completes else None
        work = self._context.assembling(self._run, raw, complete)
        answer = await self._context.sidecar.ask_async(work, "context/assemble")
        if answer is None:
            return
        if answer.system_prompt_addition:
            system.append(Message("system", [answer.system_prompt_addition]))
        context.messages = [*system, *restored(messages, raw, answer.bodies, made)]


def _run(agent: SupportsAgentRun, session: AgentSession) -> Run:
    around = current_run()
    if around is None:
        return Run(session.session_id)
    if around.session != session.session_id:
        return Run(session.session_id, around.session)
    # The tool has passed on the session of its own run; what the other agent says is not part of it.
    return Run(f"{around.session}/{agent.name or agent.id}:{uuid4().hex[:12]}", around.session)


def _tool(context: AgentContext, run: Run, name: str, description: str, schema: bytes) -> FunctionTool:
    async def look_up(**arguments: Any) -> str:
        work = context.calling(run.session, name, arguments)
        return await context.sidecar.ask_async(work, "tools/call") or NOTHING_FOUND

    return FunctionTool(name=name, description=description, func=look_up, input_model=json.loads(schema))


def _completed_by(client: SupportsChatGetResponse) -> Any:
    async def complete(params: CompleteRuntimeParams) -> str:
        asked = [Message("system", [params.system_prompt])] if params.system_prompt else []
        asked += [Message(message.role, [message.content]) for message in params.messages]
        answer = await client.get_response(asked, options={"max_tokens": params.max_tokens})
        return answer.text

    return complete


def _is_system(message: Message) -> bool:
    return message.role in ("system", "developer")


# Messages of the framework as those of Anthropic's Messages API, which hold as much as one of these does


def encoded(message: Message) -> bytes:
    """The message in the dialect `anthropic`."""
    role = "assistant" if message.role == "assistant" else "user"
    blocks = [block for content in message.contents for block in _blocks(content)]
    return dumped({"role": role, "content": blocks})


def _blocks(content: Content) -> list[_Block]:
    match content.type:
        case "text":
            return [{"type": "text", "text": content.text or ""}]
        case "text_reasoning":
            signed = {"signature": content.protected_data} if content.protected_data else {}
            return [{"type": "thinking", "thinking": content.text or "", **signed}]
        case "function_call":
            call = {"id": content.call_id, "name": content.name, "input": _arguments(content.arguments)}
            return [{"type": "tool_use", **call}]
        case "function_result":
            result = {
                "tool_use_id": content.call_id,
                "content": str(content.result or content.exception or ""),
            }
            return [{"type": "tool_result", **result} | ({"is_error": True} if content.exception else {})]
        case "data" | "uri":
            kind = "image" if str(content.media_type or "").startswith("image/") else "document"
            return [{"type": kind, "source": {"type": "url", "url": content.uri or ""}}]
        case "usage":
            return []
        case _:
            return [{"type": "text", "text": json.dumps(content.to_dict(), default=str)}]


def _arguments(arguments: str | Mapping[str, Any] | None) -> Any:
    if not isinstance(arguments, str):
        return dict(arguments or {})
    try:
        told = json.loads(arguments or "{}")
    except ValueError:
        told = None
    return cast("Any", told) if isinstance(told, dict) else {"arguments": arguments}


def made(body: bytes) -> Message:
    """A message of the framework of one that the sidecar wrote, or changed."""
    told = cast("_Block", json.loads(body))
    content = told.get("content") or ""
    blocks: Sequence[_Block] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    contents = [_content(block) for block in blocks]
    results = any(block["type"] == "tool_result" for block in blocks)
    return Message("tool" if results else str(told["role"]), contents)


def _content(block: _Block) -> Content:
    match block["type"]:
        case "tool_use":
            return Content.from_function_call(block["id"], block["name"], arguments=block["input"])
        case "tool_result":
            return Content.from_function_result(block["tool_use_id"], result=block["content"])
        case "thinking":
            return Content.from_text_reasoning(text=block["thinking"], protected_data=block.get("signature"))
        case "image" | "document":
            return Content.from_uri(block["source"]["url"])
        case _:
            return Content.from_text(str(block.get("text") or ""))
