"""Messages of Anthropic's Messages API."""

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
from sidecar.messages.dialects.base import JsonDialect, UsageMembers, inline_media
from sidecar.messages.dialects.decoding import (
    MessageDecoder,
    items,
    json_text,
    members,
    with_items,
    with_members,
)

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}
_GLANCES = {wire_role: Glance(role, role == "user", None, None) for wire_role, role in _ROLES.items()}
_OTHER = Glance("other", False, None, None)
_RESULTS = Glance("tool", False, None, None)
_RESULT_BYTES = b'"tool_result"'


class _Head(Struct):
    role: str | None = None
    type: str | None = None


class _Kind(Struct):
    type: str | None = None


class _Outline(Struct):
    content: str | list[_Kind | str] | None = None


class _Source(Struct):
    type: str = ""
    data: str | None = None
    content: str | None = None


class _Inner(Struct):
    """A block inside the content of a tool result or search result."""

    type: str = ""
    text: str | None = None
    source: _Source | str | None = None


class _Block(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw(b"")
    tool_use_id: str | None = None
    content: str | list[_Inner | str] | None = None
    is_error: bool | None = None
    source: _Source | str | None = None
    title: str | None = None


class _Message(Struct):
    role: str | None = None
    type: str | None = None
    content: str | list[_Block | str] | None = None
    usage: UsageMembers | None = None
    model: str | None = None


_decode_head = MessageDecoder(_Head)
_decode_outline = MessageDecoder(_Outline)
_decode = MessageDecoder(_Message)


class AnthropicDialect(JsonDialect):
    """The `anthropic` dialect."""

    name = "anthropic"
    keeps_lone_reasoning = True

    def glance(self, raw: bytes) -> Glance:
        """As `Dialect.glance`."""
        head = _decode_head(raw)
        wire_role = head.role or head.type
        if wire_role is None:
            raise MessageError("a message must have a `role`")
        if wire_role == "user":
            if _RESULT_BYTES in raw and _holds_only_results(raw):
                return _RESULTS
            if _RESULT_BYTES in raw:
                reading = self.read(raw)
                return Glance(reading.role, reading.opens_turn, None, None)
        return _GLANCES.get(wire_role, _OTHER)

    def read(self, raw: bytes) -> Reading:
        """As `Dialect.read`; a user message that has only tool results gets the role `tool`."""
        message = _decode(raw)
        wire_role = message.role or message.type
        if wire_role is None:
            raise MessageError("a message must have a `role`")
        role = _ROLES.get(wire_role, "other")
        parts = _Parts(message.content, role)
        text = "\n".join(parts.texts)
        calls = tuple(parts.calls)
        results = tuple(parts.results)
        if results and not parts.media and not text.strip():
            role = "tool"
        media = tuple(parts.media + parts.result_media)
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
        )
        return self._recognised(raw, reading)

    def write_text(self, role: Literal["user", "assistant"], text: str, timestamp_ms: int) -> bytes:
        """As `Dialect.write_text`."""
        del timestamp_ms
        return msgspec.json.encode({"role": role, "content": [{"type": "text", "text": text}]})

    def write_result(self, call: ToolCall, text: str, timestamp_ms: int) -> bytes:
        """As `Dialect.write_result`."""
        del timestamp_ms
        block = {"type": "tool_result", "tool_use_id": call.id, "content": text}
        return msgspec.json.encode({"role": "user", "content": [block]})

    def replace_results(self, raw: bytes, texts: dict[str, str]) -> bytes:
        """As `Dialect.replace_results`."""
        message = members(raw)
        content = None if message is None else message.get("content")
        blocks = None if content is None else items(bytes(content))
        if blocks is None:
            return raw
        replaced = [Raw(_replaced_block(bytes(block), texts)) for block in blocks]
        return with_members(raw, {"content": with_items(replaced)})


def _holds_only_results(raw: bytes) -> bool:
    content = _decode_outline(raw).content
    if not content or isinstance(content, str):
        return False
    return all(isinstance(block, _Kind) and block.type == "tool_result" for block in content)


class _Parts:
    """The parts of one message's content."""

    __slots__ = ("calls", "media", "result_media", "results", "role", "texts", "thinking", "thinks")

    def __init__(self, content: str | list[_Block | str] | None, role: Role) -> None:
        self.role = role
        self.texts: list[str] = []
        self.calls: list[ToolCall] = []
        self.results: list[ToolResult] = []
        self.media: list[Media] = []
        self.result_media: list[Media] = []
        self.thinking: list[str] = []
        self.thinks = False
        if isinstance(content, str):
            self.texts.append(content)
        else:
            for block in content or ():
                self._take(block)

    def _take(self, block: _Block | str) -> None:
        if isinstance(block, str):
            self.texts.append(block)
        elif block.type == "text":
            self.texts.append(block.text or "")
        elif block.type == "tool_use" and self.role == "assistant":
            self.calls.append(ToolCall(block.id or "", block.name or "", json_text(block.input)))
        elif block.type == "tool_result" and self.role == "user":
            text = _inner_text(block.content, self.result_media)
            self.results.append(ToolResult(block.tool_use_id or "", "", text, block.is_error is True))
        elif block.type in ("thinking", "redacted_thinking"):
            self.thinks = True
            if block.thinking:
                self.thinking.append(block.thinking)
        else:
            self._take_other(block)

    def _take_other(self, block: _Block) -> None:
        """Images, documents, search results, output of the provider's own tools, and unknown blocks."""
        if block.type == "image":
            self.media.append(_medium("image", block.source))
            return
        if block.name:
            self.texts.append(f"{block.name}({json_text(block.input)})")
        said = [block.title, block.text, _inner_text(block.content, self.media)]
        if isinstance(block.source, _Source) and block.source.type in ("text", "content"):
            said += [block.source.data, block.source.content]
        elif not any(said) and not block.name:
            self.media.append(_medium("file", block.source))
        self.texts += [text for text in said if text]


def _inner_text(content: str | list[_Inner | str] | None, media: list[Media]) -> str:
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for block in content or ():
        if isinstance(block, str):
            texts.append(block)
        elif block.text is not None:
            texts.append(block.text)
        elif block.type in ("image", "document"):
            media.append(_medium("image" if block.type == "image" else "file", block.source))
    return "\n".join(texts)


def _medium(kind: Literal["image", "file"], source: _Source | str | None) -> Media:
    return inline_media(kind, source.data if isinstance(source, _Source) else None)


def _replaced_block(block: bytes, texts: dict[str, str]) -> bytes:
    found = members(block)
    if found is None or json_text(found.get("type")) != "tool_result":
        return block
    text = texts.get(json_text(found.get("tool_use_id")))
    return block if text is None else with_members(block, {"content": msgspec.json.encode(text)})


DIALECT = AnthropicDialect()
