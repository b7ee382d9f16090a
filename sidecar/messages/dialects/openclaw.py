"""Messages of pi and OpenClaw: `user`, `assistant`, `toolResult` and the custom roles."""

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
from sidecar.messages.dialects.base import (
    JsonDialect,
    UsageMembers,
    inline_media,
    media_kind,
    milliseconds,
    sender_name,
)
from sidecar.messages.dialects.decoding import MessageDecoder, json_text, with_members

_ROLES: dict[str, Role] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "toolResult": "tool",
}
_MAKER = "context-sidecar"


class _Head(Struct):
    role: str | None = None
    type: str | None = None
    timestamp: int | float | None = None
    idempotencyKey: str | None = None
    responseId: str | None = None


class _Block(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    data: str | None = None
    mimeType: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: Raw = Raw(b"")


class _Envelope(Struct):
    """The host's metadata of a message in a group chat."""

    senderId: str | None = None
    senderName: str | None = None
    senderUsername: str | None = None


class _Message(Struct):
    role: str | None = None
    type: str | None = None
    content: str | list[_Block | str] | None = None
    timestamp: int | float | None = None
    idempotencyKey: str | None = None
    responseId: str | None = None
    toolCallId: str | None = None
    toolName: str | None = None
    isError: bool | None = None
    usage: UsageMembers | None = None
    model: str | None = None
    summary: str | None = None
    command: str | None = None
    output: str | None = None
    envelope: _Envelope | None = msgspec.field(default=None, name="__openclaw")


_decode_head = MessageDecoder(_Head)
_decode = MessageDecoder(_Message)


class OpenClawDialect(JsonDialect):
    """The `openclaw` dialect."""

    name = "openclaw"
    keeps_lone_reasoning = False

    def glance(self, raw: bytes) -> Glance:
        """As `Dialect.glance`."""
        head = _decode_head(raw)
        wire_role = head.role or head.type
        if wire_role is None:
            raise MessageError("a message must have a `role`")
        role = _ROLES.get(wire_role, "other")
        inner_id = head.idempotencyKey or head.responseId or None
        return Glance(role, role == "user", inner_id, milliseconds(head.timestamp))

    def read(self, raw: bytes) -> Reading:
        """As `Dialect.read`."""
        message = _decode(raw)
        wire_role = message.role or message.type
        if wire_role is None:
            raise MessageError("a message must have a `role`")
        role = _ROLES.get(wire_role, "other")
        parts = _Parts(message)
        text = parts.text
        calls = tuple(parts.calls) if role == "assistant" else ()
        media = tuple(parts.media)
        results: tuple[ToolResult, ...] = ()
        if role == "tool":
            name = message.toolName or ""
            results = (ToolResult(message.toolCallId or "", name, text, message.isError is True),)
            text = ""
        reading = Reading(
            role=role,
            wire_role=wire_role,
            text=text,
            calls=calls,
            results=results,
            media=media,
            reasoning="\n".join(parts.thinking),
            carries_reasoning=parts.thinks,
            usage=None if message.usage is None else message.usage.total(),
            model=message.model,
            sender=_sender(message) if role == "user" else "",
            timestamp_ms=milliseconds(message.timestamp),
            inner_id=message.idempotencyKey or message.responseId or None,
        )
        return self._recognised(raw, reading)

    def write_text(self, role: Literal["user", "assistant"], text: str, timestamp_ms: int) -> bytes:
        """As `Dialect.write_text`; an assistant message has all members that pi reads unconditionally."""
        if role == "user":
            return msgspec.json.encode({"role": "user", "content": text, "timestamp": timestamp_ms})
        numbers = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
        return msgspec.json.encode(
            {
                "role": "assistant",
                "content": [{"type": "text", "text": text}],
                "api": _MAKER,
                "provider": _MAKER,
                "model": _MAKER,
                "usage": {**numbers, "totalTokens": 0, "cost": {**numbers, "total": 0}},
                "stopReason": "stop",
                "timestamp": timestamp_ms,
            }
        )

    def write_result(self, call: ToolCall, text: str, timestamp_ms: int) -> bytes:
        """As `Dialect.write_result`."""
        return msgspec.json.encode(
            {
                "role": "toolResult",
                "toolCallId": call.id,
                "toolName": call.name,
                "content": [{"type": "text", "text": text}],
                "isError": False,
                "timestamp": timestamp_ms,
            }
        )

    def replace_results(self, raw: bytes, texts: dict[str, str]) -> bytes:
        """As `Dialect.replace_results`."""
        message = _decode(raw)
        text = texts.get(message.toolCallId or "")
        if text is None or message.role != "toolResult":
            return raw
        content = text if isinstance(message.content, str) else [{"type": "text", "text": text}]
        return with_members(raw, {"content": msgspec.json.encode(content)})


def _sender(message: _Message) -> str:
    known = message.envelope
    return sender_name(known.senderName, known.senderUsername, known.senderId) if known else ""


class _Parts:
    """The parts of one message's content."""

    __slots__ = ("calls", "media", "text", "thinking", "thinks")

    def __init__(self, message: _Message) -> None:
        self.calls: list[ToolCall] = []
        self.media: list[Media] = []
        self.thinking: list[str] = []
        self.thinks = False
        content = message.content
        if content is None:
            said = (message.summary, message.command, message.output)
            self.text = "\n".join(text for text in said if text)
        elif isinstance(content, str):
            self.text = content
        else:
            self.text = "\n".join([text for block in content if (text := self._take(block)) is not None])

    def _take(self, block: _Block | str) -> str | None:
        """The visible text of one block; calls, thinking and media are collected in their lists."""
        if isinstance(block, str):
            return block
        if block.type == "text":
            return block.text
        if block.type == "toolCall":
            self.calls.append(ToolCall(block.id or "", block.name or "", json_text(block.arguments)))
        elif block.type == "thinking":
            self.thinks = True
            if block.thinking:
                self.thinking.append(block.thinking)
        elif block.data is not None or block.type == "image":
            kind = "image" if block.type == "image" else media_kind(block.mimeType)
            self.media.append(inline_media(kind, block.data))
        else:
            return block.text
        return None


DIALECT = OpenClawDialect()
