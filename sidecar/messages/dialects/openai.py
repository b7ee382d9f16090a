"""Messages of OpenAI chat completions."""

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
from sidecar.messages.dialects.base import JsonDialect, UsageMembers, inline_media, linked_media, sender_name
from sidecar.messages.dialects.decoding import MessageDecoder, json_text, with_members

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_GLANCES = {wire_role: Glance(role, role == "user", None, None) for wire_role, role in _ROLES.items()}
_OTHER = Glance("other", False, None, None)

_FUNCTION_CALL = "function_call"
"""A call of the deprecated kind, which has no id; its result names the function instead."""


class _Head(Struct):
    role: str | None = None
    type: str | None = None


class _Url(Struct):
    url: str | None = None


class _Payload(Struct):
    data: str | None = None
    file_data: str | None = None


class _Part(Struct):
    type: str = ""
    text: str | None = None
    refusal: str | None = None
    image_url: _Url | str | None = None
    video_url: _Url | str | None = None
    input_audio: _Payload | None = None
    file: _Payload | None = None


class _Function(Struct):
    name: str | None = None
    arguments: Raw = Raw(b"")
    input: Raw = Raw(b"")


class _Call(Struct):
    id: str | None = None
    function: _Function | None = None
    custom: _Function | None = None


class _Audio(Struct):
    data: str | None = None
    transcript: str | None = None


class _Message(Struct):
    role: str | None = None
    type: str | None = None
    content: str | list[_Part | str] | None = None
    name: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    function_call: _Function | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    audio: _Audio | None = None
    usage: UsageMembers | None = None
    model: str | None = None


_decode_head = MessageDecoder(_Head)
_decode = MessageDecoder(_Message)


class OpenAIDialect(JsonDialect):
    """The `openai` dialect."""

    name = "openai"
    keeps_lone_reasoning = False
    images = frozenset(("image_url",))

    def glance(self, raw: bytes) -> Glance:
        """As `Dialect.glance`."""
        head = _decode_head(raw)
        wire_role = head.role or head.type
        if wire_role is None:
            raise MessageError("a message must have a `role`")
        return _GLANCES.get(wire_role, _OTHER)

    def read(self, raw: bytes) -> Reading:
        """As `Dialect.read`."""
        message = _decode(raw)
        wire_role = message.role or message.type
        if wire_role is None:
            raise MessageError("a message must have a `role`")
        role = _ROLES.get(wire_role, "other")
        text, media = _content(message)
        calls = _calls(message) if role == "assistant" else ()
        results: tuple[ToolResult, ...] = ()
        if role == "tool":
            results = (
                ToolResult(message.tool_call_id or message.name or "", message.name or "", text, False),
            )
            text = ""
        reasoning = message.reasoning_content or message.reasoning or ""
        reading = Reading(
            role=role,
            wire_role=wire_role,
            text=text,
            calls=calls,
            results=results,
            media=media,
            reasoning=reasoning,
            carries_reasoning=bool(reasoning),
            usage=None if message.usage is None else message.usage.total(),
            model=message.model,
            sender=sender_name(message.name) if role == "user" and message.name else "",
        )
        return self._recognised(raw, reading)

    def write_text(self, role: Literal["user", "assistant"], text: str, timestamp_ms: int) -> bytes:
        """As `Dialect.write_text`."""
        del timestamp_ms
        return msgspec.json.encode({"role": role, "content": text})

    def write_result(self, call: ToolCall, text: str, timestamp_ms: int) -> bytes:
        """As `Dialect.write_result`."""
        del timestamp_ms
        if call.wire_type == _FUNCTION_CALL:
            return msgspec.json.encode({"role": "function", "name": call.name, "content": text})
        return msgspec.json.encode({"role": "tool", "tool_call_id": call.id, "content": text})

    def replace_results(self, raw: bytes, texts: dict[str, str]) -> bytes:
        """As `Dialect.replace_results`."""
        message = _decode(raw)
        text = texts.get(message.tool_call_id or message.name or "")
        if text is None or _ROLES.get(message.role or "") != "tool":
            return raw
        return with_members(raw, {"content": msgspec.json.encode(text)})


def _content(message: _Message) -> tuple[str, tuple[Media, ...]]:
    content = message.content
    if isinstance(content, str) and message.refusal is None and message.audio is None:
        return content, ()
    texts: list[str] = []
    media: list[Media] = []
    if isinstance(content, str):
        texts.append(content)
    elif content is not None:
        for part in content:
            _take_part(part, texts, media)
    if message.refusal:
        texts.append(message.refusal)
    if message.audio is not None:
        media.append(inline_media("audio", message.audio.data))
        if message.audio.transcript:
            texts.append(message.audio.transcript)
    return "\n".join(texts), tuple(media)


def _take_part(part: _Part | str, texts: list[str], media: list[Media]) -> None:
    if isinstance(part, str):
        texts.append(part)
        return
    text = part.text if part.text is not None else part.refusal
    if text is not None:
        texts.append(text)
    if part.image_url is not None or part.type == "image_url":
        media.append(linked_media("image", _address(part.image_url)))
    if part.video_url is not None:
        media.append(linked_media("video", _address(part.video_url)))
    if part.input_audio is not None:
        media.append(inline_media("audio", part.input_audio.data))
    if part.file is not None:
        media.append(inline_media("file", part.file.file_data))


def _address(url: _Url | str | None) -> str | None:
    return url.url if isinstance(url, _Url) else url


def _calls(message: _Message) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for call in message.tool_calls or ():
        function = call.function or call.custom or _Function()
        arguments = json_text(function.arguments) or json_text(function.input)
        calls.append(ToolCall(call.id or "", function.name or "", arguments))
    old = message.function_call
    if old is not None and not calls:
        calls.append(ToolCall(old.name or "", old.name or "", json_text(old.arguments), _FUNCTION_CALL))
    return tuple(calls)


DIALECT = OpenAIDialect()
