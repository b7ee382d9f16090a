# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
"""`SidecarMiddleware`: engines of the sidecar for agents of LangChain, also in LangGraph and deepagents.

Before each call of the model the sidecar chooses what it sees; the state of the graph stays whole. Messages
that are kept are the very objects of the state, others are made of what the sidecar wrote.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Any, Unpack, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.runtime import Runtime

from sidecar.client.messages import AssembledContext
from sidecar.integrations.agent_context import (
    NOTHING_FOUND,
    AgentContext,
    AgentOptions,
    Run,
    dumped,
    restored,
)
from sidecar.integrations.shared import Complete, Work
from sidecar.protocol.runtime import CompleteRuntimeParams

_CALLS = frozenset(("tool_use", "tool_call", "function_call", "input_json_delta"))
"""Kinds of content blocks that say again what `tool_calls` says."""


class SidecarMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Lets an engine of the sidecar decide what the model sees.

    The session is the thread of the run; a run without one gets a session named after its first message.
    """

    def __init__(self, **options: Unpack[AgentOptions]) -> None:
        super().__init__()
        # A model of LangChain answers in any thread, so that nobody has to wait for summaries.
        self._context = AgentContext("langchain", "openai", options, waits=False)
        self.sidecar = self._context.sidecar
        """The process that serves this agent."""

    @cached_property
    def tools(self) -> list[BaseTool]:  # type: ignore[override]
        """The tools of the engine; asking for them starts the sidecar."""
        found = self.sidecar.ask(self._context.tool_definitions, "tools/list")
        return [_described(t.name, t.description, bytes(t.input_schema)) for t in found or ()]

    # What the framework calls

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with what the sidecar has chosen."""
        raw = [encoded(message) for message in request.messages]
        answer = self.sidecar.ask(self._assemble(request, raw), "context/assemble")
        return handler(request if answer is None else changed(request, raw, answer))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`."""
        raw = [encoded(message) for message in request.messages]
        answer = await self.sidecar.ask_async(self._assemble(request, raw), "context/assemble")
        return await handler(request if answer is None else changed(request, raw, answer))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Run the tools of the engine; others are the agent's."""
        if request.tool not in self.tools:
            return handler(request)
        text = self.sidecar.ask(self._call(request), "tools/call")
        return _result(request, text)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """As `wrap_tool_call`."""
        if request.tool not in self.tools:
            return await handler(request)
        text = await self.sidecar.ask_async(self._call(request), "tools/call")
        return _result(request, text)

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Keep the turn that has ended."""
        del runtime
        self.sidecar.ask(self._commit(state["messages"]), "context/commitTurn")

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """As `after_agent`."""
        del runtime
        await self.sidecar.ask_async(self._commit(state["messages"]), "context/commitTurn")

    # What the sidecar is asked

    def _assemble(self, request: ModelRequest[Any], raw: list[bytes]) -> Work[AssembledContext]:
        return self._context.assembling(place(request.messages), raw, completed_by(request.model))

    def _commit(self, messages: Sequence[BaseMessage]) -> Work[None]:
        # What came before has been shown by `context/assemble`, and becomes history together with this.
        begins = max((n for n, m in enumerate(messages) if isinstance(m, HumanMessage)), default=0)
        turn = [encoded(message) for message in messages[begins:]]
        key = str(messages[-1].id or len(messages)) if messages else ""
        return self._context.committing(place(messages), key, turn)

    def _call(self, request: ToolCallRequest) -> Work[str]:
        call = request.tool_call
        return self._context.calling(place(request.state["messages"]).session, call["name"], call["args"])


def _described(name: str, description: str, schema: bytes) -> BaseTool:
    """A tool for the model to see; `wrap_tool_call`, which knows the session, runs it."""

    def unreachable(**arguments: object) -> str:
        raise RuntimeError(f"{name} needs the middleware that offers it: {sorted(arguments)}")

    return StructuredTool.from_function(
        unreachable, name=name, description=description, args_schema=json.loads(schema), infer_schema=False
    )


def _result(request: ToolCallRequest, text: str | None) -> ToolMessage:
    return ToolMessage(
        text or NOTHING_FOUND, tool_call_id=request.tool_call["id"], name=request.tool_call["name"]
    )


def place(messages: Sequence[BaseMessage]) -> Run:
    """The session of the run that calls, and that of the run whose tool has started it, if one has."""
    configurable = ensure_config().get("configurable", {})
    first = next((str(message.id) for message in messages if message.id), "run")
    thread = str(configurable.get("thread_id") or first)
    # Inside of a subagent the namespace names the tool call of its parent before the step that runs now.
    above = str(configurable.get("checkpoint_ns") or "").split("|")[:-1]
    return Run("/".join([thread, *above]), "/".join([thread, *above[:-1]])) if above else Run(thread)


def completed_by(model: BaseChatModel) -> Complete:
    """Answers of the agent's model to what an engine asks."""

    def complete(params: CompleteRuntimeParams) -> str:
        asked: list[BaseMessage] = [SystemMessage(params.system_prompt)] if params.system_prompt else []
        for message in params.messages:
            made = AIMessage if message.role == "assistant" else HumanMessage
            asked.append(made(message.content))
        answer = model.invoke(asked, config={"callbacks": []}, max_tokens=params.max_tokens)
        return str(answer.text)

    return complete


def changed(request: ModelRequest[Any], raw: Sequence[bytes], answer: AssembledContext) -> ModelRequest[Any]:
    """The request with the messages of the answer, those that are kept as the objects that they were."""
    messages = restored(request.messages, raw, answer.bodies, made)
    addition = answer.system_prompt_addition
    if not addition:
        return request.override(messages=messages)
    prompt = f"{request.system_message.text!s}\n\n{addition}" if request.system_message else addition
    return request.override(messages=messages, system_message=SystemMessage(prompt))


# Messages of LangChain as those of chat completions


def encoded(message: BaseMessage) -> bytes:
    """The message in the dialect `openai`; its id goes along, so that equal messages can be told apart."""
    told: dict[str, Any] = {"role": _role(message), "content": _content(message.content)}
    if message.id:
        told["id"] = message.id
    match message:
        case AIMessage():
            calls = [(c["id"], c["name"], json.dumps(c["args"])) for c in message.tool_calls]
            calls += [(c["id"], c["name"], c["args"] or "") for c in message.invalid_tool_calls]
            if calls:
                told["tool_calls"] = [
                    {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
                    for id, name, arguments in calls
                ]
                told["content"] = told["content"] or None
        case ToolMessage():
            told["tool_call_id"] = message.tool_call_id
            told |= {"name": message.name} if message.name else {}
        case HumanMessage():
            told |= {"name": message.name} if message.name else {}
        case _:
            pass
    return dumped(told)


def _role(message: BaseMessage) -> str:
    match message:
        case AIMessage():
            return "assistant"
        case ToolMessage() | FunctionMessage():
            return "tool"
        case SystemMessage():
            return "system"
        case ChatMessage():
            return message.role
        case _:
            return "user"


def _content(content: str | list[str | dict[str, Any]]) -> object:
    if isinstance(content, str):
        return content
    parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    return [_part(part) for part in parts if part.get("type") not in _CALLS]


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") != "image":
        return part
    source = part.get("url") or f"data:{part.get('mime_type', '')};base64,{part.get('base64', '')}"
    return {"type": "image_url", "image_url": {"url": source}}


def made(body: bytes) -> AnyMessage:
    """A message of LangChain of one that the sidecar wrote, or changed."""
    told = cast("dict[str, Any]", json.loads(body))
    content, id = told.get("content") or "", told.get("id")
    match told["role"]:
        case "assistant":
            calls = [
                {"id": c["id"], "name": c["function"]["name"], "args": json.loads(c["function"]["arguments"])}
                for c in told.get("tool_calls") or ()
            ]
            return AIMessage(content, id=id, tool_calls=calls)
        case "tool":
            return ToolMessage(content, id=id, tool_call_id=told["tool_call_id"], name=told.get("name"))
        case "system":
            return SystemMessage(content, id=id)
        case _:
            return HumanMessage(content, id=id)
