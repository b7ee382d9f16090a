# pyright: strict, reportUnknownMemberType=false, reportUnknownVariableType=false, reportDeprecated=false
"""`SidecarCapability`: engines of the sidecar for agents of Pydantic AI.

Before each request to the model the sidecar chooses what it sees; the history of the run stays whole.
Messages that are kept are the very objects of the history, others are made of what the sidecar wrote.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack, cast

from pydantic_ai.agent import AgentRunResult
from pydantic_ai.capabilities import (
    AbstractCapability,
    CapabilityOrdering,
    WrapModelRequestHandler,
    WrapRunHandler,
)
from pydantic_ai.direct import model_request
from pydantic_ai.messages import (
    BinaryContent,
    CompactionPart,
    FilePart,
    FileUrl,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryPromptPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

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

_ANY_ARGUMENTS = SchemaValidator(core_schema.any_schema())
_Block = dict[str, Any]


class SidecarCapability(AbstractCapability[Any]):
    """Lets an engine of the sidecar decide what the model sees.

    The session is the conversation of the run: what `conversation_id` says, or the history that goes on.
    """

    def __init__(self, **options: Unpack[AgentOptions]) -> None:
        self._context = AgentContext("pydantic-ai", "anthropic", options)
        self.sidecar = self._context.sidecar
        """The process that serves this agent."""

    def get_ordering(self) -> CapabilityOrdering:
        """Next to the model, so that it sees what other capabilities make of the messages."""
        return CapabilityOrdering(position="innermost")

    def get_toolset(self) -> AbstractToolset[Any] | None:
        """The tools of the engine."""
        return _EngineTools(self._context) if self._context.offers_tools else None

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Keep the turn of a run that has ended; runs that its tools start are its children."""
        with running(_session(ctx)) as run:
            result = await handler()
        turn = [encoded(message) for message in _shown(result.new_messages())]
        work = self._context.committing(run, str(ctx.run_id), turn)
        await self.sidecar.ask_async(work, "context/commitTurn")
        return result

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: WrapModelRequestHandler
    ) -> ModelResponse:
        """Call the model with what the sidecar has chosen."""
        messages = _shown(request_context.messages)
        raw = [encoded(message) for message in messages]
        run = current_run() or Run(_session(ctx))
        complete = on_this_loop(_completed_by(request_context.model)) if self._context.completes else None
        work = self._context.assembling(run, raw, complete)
        answer = await self.sidecar.ask_async(work, "context/assemble")
        if answer is None:
            return await handler(request_context)
        names = {
            part.tool_call_id: part.tool_name
            for message in messages
            for part in message.parts
            if isinstance(part, ToolCallPart)
        }
        chosen = restored(messages, raw, answer.bodies, lambda body: made(body, names))
        lasting = _lasting(request_context.messages, chosen)
        if answer.system_prompt_addition:
            lasting.append(SystemPromptPart(answer.system_prompt_addition))
        if lasting:
            chosen.insert(0, ModelRequest(lasting))
        return await handler(replace(request_context, messages=chosen))


class _EngineTools(AbstractToolset[Any]):
    """The tools of the engine; what they find is about the conversation of the run."""

    def __init__(self, context: AgentContext) -> None:
        self._context = context

    @property
    def id(self) -> str:
        """One of them for each agent."""
        return "context-sidecar"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """None where the sidecar fails."""
        del ctx
        found = await self._context.sidecar.ask_async(self._context.tool_definitions, "tools/list")
        definitions = [
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=json.loads(bytes(tool.input_schema)),
            )
            for tool in found or ()
        ]
        return {
            tool.name: ToolsetTool(toolset=self, tool_def=tool, max_retries=0, args_validator=_ANY_ARGUMENTS)
            for tool in definitions
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> str:
        """What the tool found, or why it did not."""
        del tool
        work = self._context.calling(_session(ctx), name, tool_args)
        return await self._context.sidecar.ask_async(work, "tools/call") or NOTHING_FOUND


def _session(ctx: RunContext[Any]) -> str:
    return str(ctx.conversation_id or ctx.run_id)


def _completed_by(model: Model) -> Any:
    async def complete(params: CompleteRuntimeParams) -> str:
        system: list[ModelRequestPart] = (
            [SystemPromptPart(params.system_prompt)] if params.system_prompt else []
        )
        asked: list[ModelMessage] = [ModelRequest(system)] if system else []
        for message in params.messages:
            if message.role == "assistant":
                asked.append(ModelResponse([TextPart(message.content)]))
            else:
                asked.append(ModelRequest([UserPromptPart(message.content)]))
        answer = await model_request(model, asked, model_settings={"max_tokens": params.max_tokens})
        return answer.text or ""

    return complete


# Parts that hold for the whole conversation: prompts of the system, and notes of the framework for itself


def _is_said(part: ModelRequestPart) -> bool:
    return part.part_kind in ("user-prompt", "tool-return", "retry-prompt", "retry-feedback", "speech")


def _shown(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The messages that an engine may choose from."""
    return [m for m in messages if isinstance(m, ModelResponse) or any(_is_said(part) for part in m.parts)]


def _lasting(messages: Sequence[ModelMessage], chosen: Sequence[ModelMessage]) -> list[ModelRequestPart]:
    """What holds on, of the messages that the engine leaves out."""
    kept = {id(message) for message in chosen}
    left_out = [m for m in messages if isinstance(m, ModelRequest) and id(m) not in kept]
    return [part for message in left_out for part in message.parts if not _is_said(part)]


# Messages of Pydantic AI as those of Anthropic's Messages API, which hold as much as one of these does


def encoded(message: ModelMessage) -> bytes:
    """The message in the dialect `anthropic`."""
    if isinstance(message, ModelResponse):
        blocks = [block for part in message.parts for block in _response_blocks(part)]
        return dumped({"role": "assistant", "content": blocks})
    results: list[_Block] = []
    texts: list[_Block] = []
    for part in message.parts:
        match part:
            case ToolReturnPart():
                results.append(
                    _result(part.tool_call_id, part.model_response_str(), part.outcome != "success")
                )
                texts += [_file(file) for file in part.files]
            case RetryPromptPart() if part.tool_name:
                results.append(_result(part.tool_call_id, part.model_response(), True))
            case UserPromptPart():
                content = [part.content] if isinstance(part.content, str) else part.content
                texts += [_user_block(item) for item in content if not _is_cache_point(item)]
            case _ if _is_said(part):
                said = getattr(part, "model_response", None)
                text = str(said()) if said else str(getattr(part, "transcript", None) or "")
                texts.append({"type": "text", "text": text})
            case _:
                pass
    return dumped({"role": "user", "content": [*results, *texts]})


def _is_cache_point(item: object) -> bool:
    return getattr(item, "kind", None) == "cache-point"


def _result(id: str, text: str, is_error: bool) -> _Block:
    return {"type": "tool_result", "tool_use_id": id, "content": text} | (
        {"is_error": True} if is_error else {}
    )


def _user_block(item: object) -> _Block:
    if isinstance(item, (str, TextContent)):
        return {"type": "text", "text": item if isinstance(item, str) else item.content}
    return _file(item)


def _file(file: object) -> _Block:
    source: _Block
    match file:
        case BinaryContent():
            kind = "image" if file.is_image else "document"
            data = base64.b64encode(file.data).decode()
            source = {"type": "base64", "media_type": file.media_type, "data": data}
        case FileUrl():
            kind = "image" if isinstance(file, ImageUrl) else "document"
            source = {"type": "url", "url": file.url}
        case _:
            kind, source = "document", {"type": "file", "file_id": str(getattr(file, "file_id", ""))}
    return {"type": kind, "source": source}


def _response_blocks(part: ModelResponsePart) -> list[_Block]:
    match part:
        case TextPart() | CompactionPart():
            return [{"type": "text", "text": part.content or ""}]
        case ThinkingPart():
            signed = {"signature": part.signature} if part.signature else {}
            return [{"type": "thinking", "thinking": part.content, **signed}]
        case ToolCallPart():
            call = {"id": part.tool_call_id, "name": part.tool_name, "input": part.args_as_dict()}
            return [{"type": "tool_use", **call}]
        case NativeToolCallPart():
            call = {"id": part.tool_call_id, "name": part.tool_name, "input": part.args_as_dict()}
            return [{"type": "server_tool_use", **call}]
        case NativeToolReturnPart():
            return [
                {
                    "type": "server_tool_result",
                    "tool_use_id": part.tool_call_id,
                    "text": part.model_response_str(),
                }
            ]
        case FilePart():
            return [_file(part.content)]
        case _:
            return [{"type": "text", "text": str(getattr(part, "transcript", None) or "")}]


def made(body: bytes, names: dict[str, str]) -> ModelMessage:
    """A message of Pydantic AI of one that the sidecar wrote, or changed; `names` are those of tool calls."""
    told = cast("_Block", json.loads(body))
    content = told.get("content") or ""
    blocks: list[_Block] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if told["role"] == "assistant":
        return ModelResponse([part for block in blocks for part in _response_parts(block)])
    parts: list[ModelRequestPart] = []
    for block in blocks:
        if block["type"] == "tool_result":
            id = block["tool_use_id"]
            parts.append(ToolReturnPart(names.get(id, "tool"), block["content"], id))
        else:
            parts.append(UserPromptPart(_content(block)))
    return ModelRequest(parts)


def _response_parts(block: _Block) -> list[ModelResponsePart]:
    match block["type"]:
        case "tool_use":
            return [ToolCallPart(block["name"], block["input"], block["id"])]
        case "thinking":
            return [ThinkingPart(block["thinking"], signature=block.get("signature"))]
        case "text":
            return [TextPart(block["text"])]
        case _:
            return []


def _content(block: _Block) -> str | list[Any]:
    source: dict[str, str] = block.get("source") or {}
    if source.get("type") == "base64":
        return [BinaryContent(base64.b64decode(source["data"]), media_type=source["media_type"])]
    return [ImageUrl(source["url"])] if source.get("type") == "url" else str(block.get("text") or "")
