"""Detects the formats that a message matches, our dialects and those of other programs.

A message is opaque to the sidecar, and no dialect refuses one for its content. But users who name a format,
or have it detected, want to know if the messages are in another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from msgspec import Raw, json

from sidecar.messages.dialects.decoding import items, members

GEMINI = "Gemini"
AI_SDK = "Vercel AI SDK"
LANGCHAIN = "LangChain"
OPENCODE = "opencode"
FOREIGN = (GEMINI, AI_SDK, LANGCHAIN, OPENCODE)
"""Formats of other programs, which no dialect reads."""

_ANTHROPIC_BLOCKS = frozenset(
    ("text", "image", "document", "search_result", "thinking", "redacted_thinking", "container_upload")
)
_ANTHROPIC_ENDINGS = ("tool_use", "tool_result")
_RESPONSES_ITEMS = ("message", "reasoning", "item_reference", "compaction", "agent_message")
_RESPONSES_ENDINGS = ("_call", "_output", "_approval_request", "_approval_response", "_list_tools")
_OPENCLAW_ROLES = (
    *("toolResult", "bashExecution", "custom", "hookMessage"),
    *("branchSummary", "compactionSummary"),
)
_AI_SDK_PARTS = frozenset(
    ("text", "image", "file", "reasoning", "tool-call", "tool-result", "tool-approval-request")
)
_OPENAI_PARTS = frozenset(("text", "image_url", "input_audio", "video_url", "audio", "file", "refusal"))
_OPENAI_MEMBERS = frozenset(("tool_calls", "function_call", "refusal", "audio"))
"""Members that make `content` optional in an assistant's message."""
_RESPONSES_PARTS = frozenset(
    (
        *("input_text", "output_text", "input_image", "input_file", "input_audio"),
        *("refusal", "summary_text", "text"),
    )
)
_OPENCLAW_PARTS = frozenset(("text", "image", "thinking", "toolCall"))


def shapes(raw: bytes) -> frozenset[str]:
    """The formats, dialects and those in `FOREIGN`, that the message matches; may be empty.

    A message of plain text matches several.
    """
    found = members(raw)
    if found is None:
        return frozenset()
    message = _Message(found)
    return frozenset(name for name, fits in _SHAPES.items() if fits(message))


def contradiction(raw: bytes, message_format: str) -> str | None:
    """The actual format of a message that does not match `message_format`; `None` if none is evident."""
    found = shapes(raw)
    return None if not found or message_format in found else sorted(found)[0]


class _Message:
    """The features that distinguish formats."""

    def __init__(self, found: dict[str, Raw]) -> None:
        self.names = {name for name, value in found.items() if bytes(value) != b"null"}
        self.role = _text(found.get("role"))
        self.type = _text(found.get("type"))
        content = bytes(found.get("content", b""))
        self.is_text = content[:1] == b'"'
        self.kinds = _kinds(content)
        """The types of the content's parts; `None` if it is not a list."""
        self.parts = _kinds(bytes(found.get("parts", b"")))
        self.is_plain = self.parts is None and "toolInvocations" not in self.names
        """Whether it has no content member that only other programs use."""
        self.constructs = bytes(found.get("id", b"")) if self.type == "constructor" else b""

    def holds(self, known: Callable[[str], bool]) -> bool:
        """Whether there is content, and all its parts are known."""
        return self.is_text or (self.kinds is not None and all(map(known, self.kinds)))


def _openai(message: _Message) -> bool:
    if message.type not in (None, "message"):
        return False
    if message.role in ("tool", "function"):
        answers = "tool_call_id" in message.names or message.role == "function"
        return answers and message.holds(_OPENAI_PARTS.__contains__)
    calls = message.role == "assistant" and bool(message.names & _OPENAI_MEMBERS)
    if calls and message.kinds is None:
        return True
    speaks = message.role in ("system", "developer", "user", "assistant")
    # Some proxies pass on the thinking of other models before calls.
    return speaks and message.holds(lambda kind: kind in _OPENAI_PARTS or (calls and kind == "thinking"))


def _anthropic(message: _Message) -> bool:
    return (
        message.role in ("user", "assistant", "system")
        and not message.names & {"tool_calls", "tool_call_id", "function_call"}
        and message.holds(lambda kind: kind in _ANTHROPIC_BLOCKS or kind.endswith(_ANTHROPIC_ENDINGS))
    )


def _responses(message: _Message) -> bool:
    kind = message.type
    if kind not in (None, "message"):
        return kind in _RESPONSES_ITEMS or kind.endswith(_RESPONSES_ENDINGS)
    return (
        message.role in ("system", "developer", "user", "assistant")
        and not message.names & {"tool_calls", "tool_call_id", "function_call"}
        and message.holds(_RESPONSES_PARTS.__contains__)
    )


def _openclaw(message: _Message) -> bool:
    if message.role in _OPENCLAW_ROLES:
        return message.role != "toolResult" or message.holds(_OPENCLAW_PARTS.__contains__)
    return (
        message.role in ("system", "user", "assistant")
        and not message.names & {"tool_calls", "tool_call_id", "function_call"}
        and message.holds(_OPENCLAW_PARTS.__contains__)
    )


def _gemini(message: _Message) -> bool:
    if message.role == "model" or message.type == "gemini":
        return True
    parts = message.parts
    return parts is not None and not message.names & {"content", "info"} and not any(parts)


def _langchain(message: _Message) -> bool:
    if message.constructs:
        return b"langchain" in message.constructs and "kwargs" in message.names
    if message.type in ("human", "ai"):
        return bool(message.names & {"data", "content"})
    return message.type in ("system", "tool", "function") and (
        "data" in message.names or message.role is None
    )


def _opencode(message: _Message) -> bool:
    return "info" in message.names and message.parts is not None


def _ai_sdk(message: _Message) -> bool:
    if "info" in message.names:
        return False
    if message.parts is not None:
        return bool(message.parts) and all(message.parts)
    if "toolInvocations" in message.names:
        return True
    kinds = message.kinds or ()
    return any(kind.startswith("tool-") for kind in kinds) and all(kind in _AI_SDK_PARTS for kind in kinds)


_SHAPES: dict[str, Callable[[_Message], bool]] = {
    "openai": lambda message: message.is_plain and _openai(message),
    "anthropic": lambda message: message.is_plain and _anthropic(message),
    "openai-responses": lambda message: message.is_plain and _responses(message),
    "openclaw": lambda message: message.is_plain and _openclaw(message),
    GEMINI: _gemini,
    AI_SDK: _ai_sdk,
    LANGCHAIN: _langchain,
    OPENCODE: _opencode,
}


def _kinds(raw: bytes) -> tuple[str, ...] | None:
    """The types of a list's parts, empty for a part without type; `None` if `raw` is not a list."""
    found = items(raw) if raw[:1] == b"[" else None
    if found is None:
        return None
    return tuple(_kind(bytes(item)) for item in found)


def _kind(part: bytes) -> str:
    if part[:1] == b'"':
        return "text"
    found = members(part) if part[:1] == b"{" else None
    return (_text(found.get("type")) if found else None) or ""


def _text(raw: Raw | None) -> str | None:
    if raw is None or bytes(raw)[:1] != b'"':
        return None
    return cast("str", json.decode(raw))
