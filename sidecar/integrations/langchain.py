# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
"""`SidecarMiddleware`: engines of the sidecar for agents of LangChain, also in LangGraph and deepagents.

Before each call of the model the sidecar chooses what it sees; the state of the graph stays whole. Messages
that are kept are the very objects of the state, others are made of what the sidecar wrote.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

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

from sidecar.client import SidecarClient
from sidecar.client.errors import InvalidParams
from sidecar.client.messages import AssembledContext
from sidecar.client.sidecar_client import DEFAULT_COMMAND
from sidecar.integrations.shared import TIMEOUT_S, Complete, SharedSidecar, Work
from sidecar.protocol.runtime import CompleteRuntimeParams

HOST = "langchain"
_CONFIG: Mapping[str, object] = {"memory": {"placement": "message"}}
"""The state of a graph keeps the user's messages as they are, so that nothing can be appended to them."""
_SHARED: dict[str, SharedSidecar] = {}
"""The processes of this program, by their options: agents with the same ones share a process."""
_CALLS = frozenset(("tool_use", "tool_call", "function_call", "input_json_delta"))
"""Kinds of content blocks that say again what `tool_calls` says."""


class SidecarMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Lets an engine of the sidecar decide what the model sees.

    `token_budget` is for the messages, without system prompt and tools. The session is the thread of the run;
    a run without one gets a session named after its first message. With `summaries="model"` an engine may ask
    the agent's own model for summaries, otherwise they are made without one. `tools=False` keeps the tools
    from the model that look up what it does not see any more.
    """

    def __init__(
        self,
        *,
        engine: str | None = None,
        token_budget: int | None = None,
        agent_id: str | None = None,
        summaries: Literal["model", "deterministic"] = "deterministic",
        tools: bool = True,
        namespace: str | None = None,
        state_dir: str | Path | None = None,
        config: Mapping[str, object] | None = None,
        command: Sequence[str] = DEFAULT_COMMAND,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        super().__init__()
        self._budget = token_budget
        self._agent_id = agent_id
        self._completes = summaries == "model"
        self._children: set[str] = set()
        """Sessions of subagents at work."""
        self._offers_tools = tools
        options: dict[str, Any] = {
            "engine": engine,
            "namespace": namespace,
            "state_dir": str(state_dir) if state_dir else None,
            "config": {**_CONFIG, **(config or {})},
            "command": tuple(command),
            "timeout_s": timeout_s,
            "completes": self._completes,
        }
        key = json.dumps(options, sort_keys=True, default=str)
        if key not in _SHARED:
            _SHARED[key] = SharedSidecar(message_format="openai", host=HOST, **options)
        self.sidecar = _SHARED[key]
        """The process that serves this agent."""

    @cached_property
    def tools(self) -> list[BaseTool]:  # type: ignore[override]
        """The tools of the engine; asking for them starts the sidecar."""
        if not self._offers_tools:
            return []
        found = self.sidecar.ask(lambda client: client.tools(agent_id=self._agent_id), "tools/list")
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
        session, parent = place(request.messages)
        if self._completes:
            self.sidecar.use_model(session, completed_by(request.model))

        async def work(client: SidecarClient) -> AssembledContext:
            if parent is not None:
                await self._spawned(client, session, parent)
            return await client.assemble(session, self._budget, raw, agent_id=self._agent_id)

        return work

    async def _spawned(self, client: SidecarClient, session: str, parent: str) -> None:
        """Let the sidecar know whose child a session is; known ones stay as they are."""
        if session in self._children:
            return
        self._children.add(session)
        await client.prepare_spawn(
            parent,
            session,
            "isolated",
            parent_session_id=parent,
            child_session_id=session,
            agent_id=self._agent_id,
        )

    def _commit(self, messages: Sequence[BaseMessage]) -> Work[None]:
        session, parent = place(messages)
        # What came before has been shown by `context/assemble`, and becomes history together with this.
        begins = max((n for n, m in enumerate(messages) if isinstance(m, HumanMessage)), default=0)
        turn = [encoded(message) for message in messages[begins:]]
        key = str(messages[-1].id or len(messages)) if messages else ""

        async def work(client: SidecarClient) -> None:
            if turn:
                await client.commit_turn(session, key, turn, agent_id=self._agent_id)
            if turn and self._completes:
                # The model takes its time: the next turn does not wait for it.
                self.sidecar.go_on(self._compacted(client, session), "context/compact")
            if parent is not None:
                self._children.discard(session)
                await client.subagent_ended(session, "completed", agent_id=self._agent_id)

        return work

    async def _compacted(self, client: SidecarClient, session: str) -> None:
        await client.compact(session, self._budget, compaction_target="threshold", agent_id=self._agent_id)

    def _call(self, request: ToolCallRequest) -> Work[str]:
        session, _ = place(request.state["messages"])
        name, arguments = request.tool_call["name"], request.tool_call["args"]

        async def work(client: SidecarClient) -> str:
            try:
                found = await client.call_tool(session, name, arguments, agent_id=self._agent_id)
            except InvalidParams as error:
                return f"Wrong arguments: {error}"
            return "\n".join(part.text for part in found.content)

        return work


def _described(name: str, description: str, schema: bytes) -> BaseTool:
    """A tool for the model to see; `wrap_tool_call`, which knows the session, runs it."""

    def unreachable(**arguments: object) -> str:
        raise RuntimeError(f"{name} needs the middleware that offers it: {sorted(arguments)}")

    return StructuredTool.from_function(
        unreachable, name=name, description=description, args_schema=json.loads(schema), infer_schema=False
    )


def _result(request: ToolCallRequest, text: str | None) -> ToolMessage:
    shown = text or "The earlier conversation cannot be looked up at the moment."
    return ToolMessage(shown, tool_call_id=request.tool_call["id"], name=request.tool_call["name"])


def place(messages: Sequence[BaseMessage]) -> tuple[str, str | None]:
    """The session of the run that calls, and that of the run whose tool has started it, if one has."""
    configurable = ensure_config().get("configurable", {})
    first = next((str(message.id) for message in messages if message.id), "run")
    thread = str(configurable.get("thread_id") or first)
    # Inside of a subagent the namespace names the tool call of its parent before the step that runs now.
    above = str(configurable.get("checkpoint_ns") or "").split("|")[:-1]
    return ("/".join([thread, *above]), "/".join([thread, *above[:-1]])) if above else (thread, None)


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
    kept: dict[bytes, list[AnyMessage]] = {}
    for message, body in zip(reversed(request.messages), reversed(raw), strict=True):
        kept.setdefault(body, []).append(message)
    messages = [kept[body].pop() if kept.get(body) else made(body) for body in answer.bodies]
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
    return json.dumps(told, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")


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
