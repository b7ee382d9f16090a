"""Imports exports of ChatGPT and claude.ai, with many conversations each, as messages of chat completions."""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec import Raw, Struct

from sidecar.messages.dialects.decoding import items, json_text, members
from sidecar.messages.importers.foreign import Call, Chat, as_json, as_text, decoded, objects, texts
from sidecar.messages.importers.transcript import (
    BYTE_ORDER_MARK,
    Source,
    Span,
    Text,
    Transcript,
    TranscriptError,
    encoded,
    milliseconds,
)


class Conversation(NamedTuple):
    """One conversation of an export."""

    id: str
    source: Source


class _Named(Struct):
    id: str | None = None
    conversation_id: str | None = None
    uuid: str | None = None


def format_of(document: bytes) -> str | None:
    """`chatgpt` or `claude-ai` for one conversation or an array of them, else `None`."""
    if document[:1] == b"[":
        found = items(document)
        document = bytes(found[0]) if found else b""
    names = (members(document) or {}).keys() if document[:1] == b"{" else ()
    if "mapping" in names and ("current_node" in names or "conversation_id" in names):
        return "chatgpt"
    return "claude-ai" if "chat_messages" in names else None


def conversations(document: bytes) -> list[Conversation]:
    """The conversations of an export, each as a separate source; empty if the document is not an export."""
    if format_of(document) is None:
        return []
    found = items(document) if document[:1] == b"[" else None
    sources = [document] if found is None else [bytes(item) for item in found]
    named: list[Conversation] = []
    for number, raw in enumerate(sources, 1):
        names = decoded(raw, _Named)
        id = names.conversation_id or names.id or names.uuid or f"conversation-{number}"
        named.append(Conversation(id, Text.of(raw)))
    return named


def _only(source: Source) -> tuple[Span, bytes]:
    """The only conversation of a source, with its place.

    Raises:
        TranscriptError: the source has none, or several.
    """
    data = source.read_bytes()
    document = data.removeprefix(BYTE_ORDER_MARK).strip()
    found = conversations(document)
    if len(found) != 1:
        many = f"{len(found)} conversations" if found else "no conversation"
        hint = "; `sessions import` stores each as a session, or put one into its own file" if found else ""
        raise TranscriptError(f"the file has {many}{hint}")
    raw = found[0].source.read_bytes()
    start = data.find(raw)
    return Span(start, start + len(raw)), raw


# --- ChatGPT ------------------------------------------------------------------------------------------------

_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_SAID = frozenset(
    ("text", "multimodal_text", "code", "execution_output", "tether_quote", "tether_browsing_display")
)


class _Author(Struct):
    role: str = ""
    name: str | None = None


class _GptContent(Struct):
    content_type: str = ""
    parts: Raw = Raw(b"")
    text: str | None = None
    result: str | None = None


class _GptMessage(Struct):
    id: str | None = None
    author: _Author | None = None
    create_time: float | None = None
    content: Raw = Raw(b"")
    recipient: str | None = None


class _GptNode(Struct):
    message: Raw = Raw(b"")
    parent: str | None = None


class _GptConversation(Struct):
    mapping: Raw = Raw(b"")
    current_node: str | None = None


def chatgpt(source: Source) -> Transcript:
    """A conversation of a ChatGPT export, on its current branch."""
    span, raw = _only(source)
    conversation = decoded(raw, _GptConversation)
    nodes = {
        name: decoded(bytes(node), _GptNode)
        for name, node in (members(bytes(conversation.mapping)) or {}).items()
    }
    branch: list[_GptNode] = []
    name = conversation.current_node or next(reversed(nodes), None)
    while name is not None and (node := nodes.pop(name, None)) is not None:
        branch.append(node)
        name = node.parent
    chat = Chat()
    for _ in nodes:
        chat.transcript.skip("other branch")
    for node in reversed(branch):
        if bytes(node.message)[:1] == b"{":
            _say_gpt(chat, span, decoded(bytes(node.message), _GptMessage))
    return chat.transcript


def _say_gpt(chat: Chat, span: Span, message: _GptMessage) -> None:
    author = message.author or _Author()
    content = decoded(bytes(message.content), _GptContent)
    if content.content_type not in _SAID:
        chat.transcript.skip(content.content_type or "message without content")
        return
    found = items(bytes(content.parts)) if content.parts else None
    spoken = [json_text(part) for part in found or () if bytes(part)[:1] == b'"']
    text = "\n\n".join(one for one in (*spoken, content.text, content.result) if one)
    at = None if message.create_time is None else round(message.create_time * 1000)
    if author.role == "tool":
        chat.answer(span, None, None, text, at=at)
    elif author.role == "assistant" and message.recipient not in (None, "all"):
        name = _NAME.sub("_", message.recipient or "")
        arguments = text if text[:1] == "{" else encoded({"input": text}).decode()
        chat.say(span, "assistant", (), [Call(message.id, name, arguments)], id=message.id, at=at)
    elif author.role in ("system", "user", "assistant"):
        chat.say(span, author.role, texts(text), id=message.id, at=at)
    else:
        chat.transcript.skip(f"message of the role {author.role!r}")


# --- claude.ai ----------------------------------------------------------------------------------------------


class _ClaudeBlock(Struct):
    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str = ""
    input: Raw = Raw(b"")
    tool_use_id: str | None = None
    content: Raw = Raw(b"")


class _Attachment(Struct):
    file_name: str | None = None
    extracted_content: str | None = None


class _ClaudeMessage(Struct):
    uuid: str | None = None
    sender: str = ""
    text: str | None = None
    content: Raw = Raw(b"")
    created_at: str | None = None
    attachments: Raw = Raw(b"")


class _ClaudeConversation(Struct):
    chat_messages: Raw = Raw(b"")


_CLAUDE_ROLES = {"human": "user", "assistant": "assistant"}


def claude_ai(source: Source) -> Transcript:
    """A conversation of a claude.ai export."""
    span, raw = _only(source)
    chat = Chat()
    for message in objects(decoded(raw, _ClaudeConversation).chat_messages, _ClaudeMessage):
        role = _CLAUDE_ROLES.get(message.sender)
        if role is None:
            chat.transcript.skip(
                f"message of {message.sender!r}" if message.sender else "message without sender"
            )
        else:
            _say_claude(chat, span, role, message)
    return chat.transcript


def _say_claude(chat: Chat, span: Span, role: str, message: _ClaudeMessage) -> None:
    at = milliseconds(message.created_at)
    said, calls = texts(*(_attached(one) for one in objects(message.attachments, _Attachment))), list[Call]()
    blocks = objects(message.content, _ClaudeBlock)
    if not any(block.type != "text" or block.text for block in blocks):
        said += texts(message.text)
    for block in blocks:
        if calls and block.type in ("text", "tool_result"):
            chat.say(span, role, said, calls, id=message.uuid, at=at)
            said, calls = [], []
        if block.type == "text":
            said += texts(block.text)
        elif block.type == "tool_use":
            calls.append(Call(block.id, block.name, as_json(block.input)))
        elif block.type == "tool_result":
            chat.answer(span, block.tool_use_id, block.name, _claude_result(block.content), at=at)
    chat.say(span, role, said, calls, id=message.uuid, at=at)


def _attached(attachment: _Attachment) -> str | None:
    if not attachment.extracted_content:
        return None
    return f"{attachment.file_name or 'attachment'}:\n{attachment.extracted_content}"


def _claude_result(content: Raw) -> str:
    blocks = objects(content, _ClaudeBlock)
    return "\n".join(block.text for block in blocks if block.text) or as_text(content)
