"""Tells the format of a transcript file by its first rows."""

from __future__ import annotations

from itertools import islice

import msgspec
from msgspec import Raw

from sidecar.messages.importers.documents import is_document
from sidecar.messages.importers.rows import lines
from sidecar.messages.importers.transcript import Source, TranscriptError

FORMATS: tuple[str, ...] = (
    "openai-chat",
    "anthropic-messages",
    "claude-code",
    "codex",
    "pi",
    "openclaw",
    "swe-agent",
)

_EXPECTED = (
    "expected a Claude Code, Codex, pi or OpenClaw session (JSON Lines), messages of OpenAI chat completions "
    "or Anthropic (JSON), or a SWE-agent trajectory"
)
_LOOK = 50
_CODEX_ROWS = frozenset(
    ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
)
_CODEX_ITEMS = frozenset(("message", "reasoning", "function_call", "function_call_output"))
_PI_ROWS = frozenset(("session", "message", "model_change", "thinking_level_change", "custom_message"))
_ANTHROPIC_SIGNS = (b'"tool_use"', b'"tool_result"', b'"thinking"', b'"anthropic_version"', b'"tool_use_id"')


def detect(source: Source) -> str:
    """The name of the file's format, one of `FORMATS`.

    Raises:
        TranscriptError: the file is of none of them.
    """
    first = next(lines(source), b"").strip()
    if not first:
        raise TranscriptError(f"the file is empty; {_EXPECTED}")
    for line in islice(lines(source), _LOOK):
        members = _members(line)
        found = _row_format(members, line) if members else None
        if found == "pi" and _mentions_openclaw(source):
            return "openclaw"
        if found is not None:
            return found
        if members and members.keys() & {"messages", "history"}:
            break
    return _document_format(source)


def _row_format(members: dict[str, Raw], line: bytes) -> str | None:
    kind = _text(members.get("type"))
    if "payload" in members and kind in _CODEX_ROWS:
        return "codex"
    if "uuid" in members and "parentUuid" in members:
        return "claude-code"
    if kind in ("summary", "file-history-snapshot") and members.keys() & {"leafUuid", "messageId"}:
        return "claude-code"
    if kind == "session" and "id" in members:
        return "pi"
    if kind in _PI_ROWS and "timestamp" in members and members.keys() & {"message", "modelId", "customType"}:
        return "pi"
    if "record_type" in members or (kind in _CODEX_ITEMS and "role" not in members):
        return "codex"
    if kind == "message" and "role" in members:
        return "codex"
    if kind is None and "role" in members and "content" in members:
        return message_format_of(line)
    return None


def _document_format(source: Source) -> str:
    data = source.read_bytes().removeprefix(b"\xef\xbb\xbf").strip()
    if not is_document(data):
        raise TranscriptError(f"the file is neither JSON nor JSON Lines of a known kind; {_EXPECTED}")
    if data[:1] == b"[":
        if b'"role"' in data:
            return message_format_of(data)
    elif members := _members(data):
        if bytes(members.get("history", b""))[:1] == b"[":
            return "swe-agent"
        if bytes(members.get("messages", b""))[:1] == b"[":
            return message_format_of(data)
    raise TranscriptError(f"the JSON holds no messages; {_EXPECTED}")


def message_format_of(data: bytes) -> str:
    """The format of plain messages; without blocks of Anthropic's, the two are the same."""
    if b'"tool_calls"' in data or b'"tool_call_id"' in data:
        return "openai-chat"
    return "anthropic-messages" if any(sign in data for sign in _ANTHROPIC_SIGNS) else "openai-chat"


def _mentions_openclaw(source: Source) -> bool:
    return any(b"openclaw" in line.lower() for line in islice(lines(source), _LOOK))


def _members(line: bytes) -> dict[str, Raw] | None:
    from sidecar.messages.dialects.splicing import members

    return members(line)


def _text(raw: Raw | None) -> str | None:
    if raw is None or bytes(raw)[:1] != b'"':
        return None
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.DecodeError:
        return None
