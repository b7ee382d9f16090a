"""Items of OpenAI's Responses API."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from sidecar.messages.contract import (
    Glance,
    Media,
    MessageError,
    Reading,
    Role,
    ToolCall,
    ToolResult,
)
from sidecar.messages.dialects.base import JsonDialect, UsageMembers, inline_media, linked_media
from sidecar.messages.dialects.decoding import MessageDecoder, json_text, tolerant, with_members

_MESSAGE_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_OUTPUT_TYPES = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "tool_search_call": "tool_search_output",
}
"""Types of calls that the host answers, and the types of their outputs."""
_PROVIDER_CALLS = frozenset(
    ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")
)
"""Tools run by the provider; call and result are one item."""
_OUTPUTS = frozenset(_OUTPUT_TYPES.values())


class _Head(Struct):
    role: str | None = None
    type: str | None = None
    id: str | None = None


class _Part(Struct):
    type: str = ""
    text: str | None = None
    refusal: str | None = None
    transcript: str | None = None
    image_url: str | None = None
    file_data: str | None = None
    data: str | None = None


class _Item(Struct):
    role: str | None = None
    type: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    content: str | list[_Part | str] | None = None
    summary: list[_Part | str] | None = None
    arguments: Raw = Raw(b"")
    input: Raw = Raw(b"")
    action: Raw = Raw(b"")
    operation: Raw = Raw(b"")
    output: Raw = Raw(b"")
    tools: Raw = Raw(b"")
    code: str | None = None
    queries: list[str] | None = None
    usage: UsageMembers | None = None
    model: str | None = None


_decode_head = MessageDecoder(_Head)
_decode = MessageDecoder(_Item)


class OpenAIResponsesDialect(JsonDialect):
    """The `openai-responses` dialect."""

    name = "openai-responses"
    keeps_lone_reasoning = True
    texts = frozenset(("output_text", "input_text", "text"))
    images = frozenset(("input_image",))
    note = "input_text"

    def glance(self, raw: bytes) -> Glance:
        """As `Dialect.glance`."""
        head = _decode_head(raw)
        role = _role(head.role, head.type)
        return Glance(role, role == "user", head.id or None, None)

    def read(self, raw: bytes) -> Reading:
        """As `Dialect.read`."""
        item = _decode(raw)
        kind = item.type or "message"
        role = _role(item.role, item.type)
        media: list[Media] = []
        text = _text(item.content, media)
        calls: tuple[ToolCall, ...] = ()
        results: tuple[ToolResult, ...] = ()
        reasoning = ""
        if kind == "reasoning":
            reasoning, text = "\n".join(filter(None, (_text(item.summary, media), text))), ""
        elif kind in _OUTPUT_TYPES and item.call_id:
            calls = (ToolCall(item.call_id, item.name or kind.removesuffix("_call"), _arguments(item), kind),)
        elif kind in _OUTPUTS:
            results = (ToolResult(item.call_id or "", item.name or "", _output(item, media), False),)
        elif kind != "message":
            text = "\n".join(filter(None, (text, _item_text(item))))
        reading = Reading(
            role=role,
            wire_role=item.role or item.type or "",
            text=text,
            calls=calls,
            results=results,
            media=tuple(media),
            reasoning=reasoning,
            carries_reasoning=kind == "reasoning",
            usage=None if item.usage is None else item.usage.total(),
            model=item.model,
            inner_id=item.id or None,
        )
        return self._recognised(raw, reading)

    def write_text(self, role: Literal["user", "assistant"], text: str, timestamp_ms: int) -> bytes:
        """As `Dialect.write_text`."""
        del timestamp_ms
        part = {"type": "input_text" if role == "user" else "output_text", "text": text}
        return msgspec.json.encode({"type": "message", "role": role, "content": [part]})

    def write_result(self, call: ToolCall, text: str, timestamp_ms: int) -> bytes:
        """As `Dialect.write_result`; the output's type matches the call's."""
        del timestamp_ms
        kind = _OUTPUT_TYPES.get(call.wire_type, "function_call_output")
        item: dict[str, object] = {"type": kind, "call_id": call.id}
        if kind == "tool_search_output":
            item |= {"status": "completed", "execution": "client", "tools": []}
        elif kind == "shell_call_output":
            outcome = {"type": "exit", "exit_code": 0}
            item["output"] = [{"stdout": text, "stderr": "", "outcome": outcome}]
        elif kind == "apply_patch_call_output":
            item |= {"status": "failed", "output": text}
        else:
            item["output"] = text
        return msgspec.json.encode(item)

    def replace_results(self, raw: bytes, texts: dict[str, str]) -> bytes:
        """As `Dialect.replace_results`; outputs that are not text stay."""
        item = _decode(raw)
        text = texts.get(item.call_id or "")
        if text is None or item.type not in _OUTPUTS or bytes(item.output)[:1] not in (b'"', b"[", b"{"):
            return raw
        if item.type in ("shell_call_output", "computer_call_output"):
            return raw
        return with_members(raw, {"output": msgspec.json.encode(text)})


def _role(role: str | None, kind: str | None) -> Role:
    if kind is None or kind == "message":
        if role is None and kind is None:
            raise MessageError("an item must have a `type` or a `role`")
        return _MESSAGE_ROLES.get(role or "", "other")
    if kind == "reasoning" or kind in _OUTPUT_TYPES or kind in _PROVIDER_CALLS:
        return "assistant"
    return "tool" if kind in _OUTPUTS else "other"


def _text(content: str | list[_Part | str] | None, media: list[Media]) -> str:
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for part in content or ():
        if isinstance(part, str):
            texts.append(part)
            continue
        text = part.text if part.text is not None else part.refusal or part.transcript
        if text is not None:
            texts.append(text)
        if part.type in ("input_image", "computer_screenshot"):
            media.append(linked_media("image", part.image_url))
        elif part.type == "input_audio":
            media.append(inline_media("audio", part.data))
        elif part.type == "input_file":
            media.append(inline_media("file", part.file_data))
    return "\n".join(texts)


def _arguments(item: _Item) -> str:
    for value in (item.arguments, item.input, item.action, item.operation):
        text = json_text(value)
        if text:
            return text
    return ""


def _output(item: _Item, media: list[Media]) -> str:
    """The output as text: a string, one or more text parts, or any other JSON."""
    raw = bytes(item.output) or bytes(item.tools)
    parts: list[_Part | str] = []
    if raw[:1] == b"[":
        parts = tolerant(raw, list[_Part | str]) or []
    elif raw[:1] == b"{":
        part = tolerant(raw, _Part)
        parts = [] if part is None else [part]
    text = _text(parts, media)
    return text or ("" if media else json_text(raw))


def _item_text(item: _Item) -> str:
    """The text of an item of another type: its name and input, code, queries and outcome."""
    said = [item.name, _arguments(item), item.code, *(item.queries or ()), json_text(item.output)]
    return "\n".join(filter(None, said))


DIALECT = OpenAIResponsesDialect()
