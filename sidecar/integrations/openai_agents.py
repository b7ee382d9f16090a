# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false
"""`SidecarSessions`: engines of the sidecar for agents of the OpenAI Agents SDK.

A session of the SDK is wrapped: it stays the store, and its `filter` lets the sidecar choose what each call
of the model sees. Items that are kept are the very objects of the run, others are made of what the sidecar
wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple, Unpack, cast
from uuid import uuid4

from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelSettings,
    ModelTracing,
    MultiProvider,
    Session,
    TResponseInputItem,
)
from agents.memory import SessionSettings
from agents.run_config import CallModelData, ModelInputData
from agents.tool_context import ToolContext
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from sidecar.integrations.agent_context import (
    NOTHING_FOUND,
    AgentContext,
    AgentOptions,
    Run,
    dumped,
    on_this_loop,
    restored,
)
from sidecar.protocol.runtime import CompleteRuntimeParams


class _Call(NamedTuple):
    """A call of the model, as what it leads to sees it: tools, runs that they start, the next call."""

    session: SidecarSession
    run: Run
    raw: list[bytes]


_call: ContextVar[_Call | None] = ContextVar("context_sidecar_call", default=None)


class SidecarSessions:
    """Lets an engine of the sidecar decide what the model sees in the sessions that `session` wraps."""

    def __init__(self, **options: Unpack[AgentOptions]) -> None:
        self._context = AgentContext("openai-agents", "openai-responses", options)
        self.sidecar = self._context.sidecar
        """The process that serves these sessions."""

    def session(self, session: Session) -> SidecarSession:
        """The session, with a filter for its runs."""
        return SidecarSession(self._context, session)

    def tools(self) -> list[FunctionTool]:
        """The tools of the engine, for any agent; asking for them starts the sidecar."""
        found = self.sidecar.ask(self._context.tool_definitions, "tools/list")
        return [
            FunctionTool(
                name=tool.name,
                description=tool.description,
                params_json_schema=json.loads(bytes(tool.input_schema)),
                on_invoke_tool=self._look_up,
                strict_json_schema=False,
            )
            for tool in found or ()
        ]

    async def _look_up(self, context: ToolContext[Any], arguments: str) -> str:
        call = _call.get()
        if call is None:
            return NOTHING_FOUND
        try:
            told: object = json.loads(arguments or "{}")
        except ValueError as error:
            return f"Wrong arguments: {error}"
        if not isinstance(told, dict):
            return "Wrong arguments: an object is expected"
        name = context.tool_name
        work = self._context.calling(call.run.session, name, cast("dict[str, object]", told))
        return await self.sidecar.ask_async(work, "tools/call") or NOTHING_FOUND


class SidecarSession:
    """A session of the SDK whose runs an engine of the sidecar follows.

    Give it to `Runner.run` as `session`, and its `filter` as `call_model_input_filter` of the `RunConfig`.
    """

    def __init__(self, context: AgentContext, session: Session) -> None:
        self._context = context
        self._inner = session
        self._turn: list[bytes] = []
        """What was added since the last answer."""
        self._children: dict[str, dict[Run, tuple[Agent[Any], list[bytes]]]] = {}
        """The runs that tools of a session have started: their agents, and what these have said last."""

    @property
    def session_id(self) -> str:
        """The id of the session that is wrapped, and of the one in the sidecar."""
        return self._inner.session_id

    @property
    def session_settings(self) -> SessionSettings | None:
        """Those of the session that is wrapped."""
        return self._inner.session_settings

    @session_settings.setter
    def session_settings(self, settings: SessionSettings | None) -> None:
        self._inner.session_settings = settings

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items that the wrapped session keeps; a run of its own begins with this."""
        _call.set(None)
        return await self._inner.get_items(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Keep the items; an answer ends a turn, which the sidecar keeps as well."""
        await self._inner.add_items(items)
        self._turn += map(encoded, items)
        if items and items[-1].get("role") == "assistant":
            turn, self._turn = self._turn, []
            work = self._context.committing(Run(self.session_id), uuid4().hex, turn)
            await self._context.sidecar.ask_async(work, "context/commitTurn")

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item back, also in the sidecar."""
        self._turn.clear()
        item = await self._inner.pop_item()
        if item is not None:
            work = self._context.rewinding(self.session_id, encoded(item))
            await self._context.sidecar.ask_async(work, "session/truncate")
        return item

    async def clear_session(self) -> None:
        """Erase the session, also in the store of the sidecar."""
        self._turn.clear()
        await self._inner.clear_session()
        await self._context.sidecar.ask_async(self._context.erasing(self.session_id), "session/delete")

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """What the sidecar has chosen of the input, or all of it where it fails."""
        items, instructions = data.model_data.input, data.model_data.instructions
        raw = [encoded(item) for item in items]
        run = self._run(data.agent, raw)
        _call.set(_Call(self, run, raw))
        if run.parent is not None:
            self._children.setdefault(run.parent, {})[run] = data.agent, raw
        await self._end(run.session)
        complete = on_this_loop(_completed_by(data.agent)) if self._context.completes else None
        work = self._context.assembling(run, raw, complete)
        answer = await self._context.sidecar.ask_async(work, "context/assemble")
        if answer is None:
            return data.model_data
        chosen = restored(items, raw, answer.bodies, made)
        said = [text for text in (instructions, answer.system_prompt_addition) if text]
        return ModelInputData(input=chosen, instructions="\n\n".join(said) or None)

    def _run(self, agent: Agent[Any], raw: list[bytes]) -> Run:
        """The run that calls. One that a tool has started has this filter too, and a history of its own.

        Not every call of a run is seen from its next one, as the SDK makes some in tasks of their own.
        """
        before = _call.get()
        if before is None or before.session is not self:
            return Run(self.session_id)
        parent = before.run.session
        for run, (its_agent, known) in self._children.get(parent, {}).items():
            if its_agent is agent and _extends(raw, known):
                return run
        if _extends(raw, before.raw):
            return before.run
        return Run(f"{parent}/{agent.name}:{uuid4().hex[:12]}", parent)

    async def _end(self, parent: str) -> None:
        """Keep the runs whose results the model is about to see: they have ended."""
        for run, (_, raw) in self._children.pop(parent, {}).items():
            await self._end(run.session)
            work = self._context.committing(run, uuid4().hex, raw)
            await self._context.sidecar.ask_async(work, "context/commitTurn")


def _extends(raw: list[bytes], known: list[bytes]) -> bool:
    return len(raw) > len(known) and raw[: len(known)] == known


def _completed_by(agent: Agent[Any]) -> Any:
    model = agent.model if isinstance(agent.model, Model) else MultiProvider().get_model(agent.model)

    async def complete(params: CompleteRuntimeParams) -> str:
        asked = [{"role": message.role, "content": message.content} for message in params.messages]
        answer = await model.get_response(
            params.system_prompt,
            cast("list[TResponseInputItem]", asked),
            ModelSettings(max_tokens=params.max_tokens),
            tools=[],
            output_schema=None,
            handoffs=[],
            tracing=ModelTracing.DISABLED,
            previous_response_id=None,
            conversation_id=None,
            prompt=None,
        )
        messages = [item for item in answer.output if isinstance(item, ResponseOutputMessage)]
        parts = [part for message in messages for part in message.content]
        return "".join(part.text for part in parts if isinstance(part, ResponseOutputText))

    return complete


def encoded(item: TResponseInputItem) -> bytes:
    """The item in the dialect `openai-responses`, without what the SDK may leave out the next time."""
    told = {key: value for key, value in cast("Mapping[str, object]", item).items() if value is not None}
    told.pop("id", None)
    told.pop("status", None)
    return dumped(told)


def made(body: bytes) -> TResponseInputItem:
    """An item that the sidecar wrote, or changed."""
    return cast("TResponseInputItem", json.loads(body))
