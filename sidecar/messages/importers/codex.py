"""Imports Codex rollout files in the current and older formats."""

from __future__ import annotations

from msgspec import Raw, Struct

from sidecar.messages.dialects.base import UsageMembers
from sidecar.messages.dialects.decoding import json_text, tolerant
from sidecar.messages.importers.transcript import (
    Imported,
    Row,
    Source,
    Transcript,
    encoded,
    exact,
    milliseconds,
    rows,
)
from sidecar.messages.text import fold

_ITEMS = frozenset(("message", "reasoning", "agent_message"))
"""Types of response items that are imported in addition to calls and their outputs."""


class _Part(Struct):
    text: str | None = None


class _Spoken(Struct):
    """The item of an `item_completed` event."""

    type: str | None = None
    content: list[_Part] | None = None


class _Function(Struct):
    name: str | None = None


class _TokenInfo(Struct):
    last_token_usage: Raw = Raw(b"")


class _Payload(Struct):
    type: str | None = None
    role: str | None = None
    id: str | None = None
    name: str | None = None
    call_id: str | None = None
    message: str | None = None
    content: list[_Part] | None = None
    item: _Spoken | None = None
    function: _Function | None = None
    arguments: Raw = Raw(b"")
    result: Raw = Raw(b"")
    replacement_history: list[Raw] | None = None
    info: _TokenInfo | None = None


class _Row(Struct):
    type: str | None = None
    timestamp: str | None = None
    payload: Raw = Raw(b"")
    record_type: str | None = None


class _Said(Struct):
    """The spoken text of a row, and the kind of the row."""

    role: str
    text: str
    source: str
    folded: str
    """The text, folded for comparison."""


def load(source: Source) -> Transcript:
    """The items of the conversation; events, which repeat most items, count only for text without an item."""
    transcript = Transcript("openai-responses")
    found = list(rows(source, _Row, transcript))
    payloads = [row.once(_payload) for row in found]
    said = [row.once(_said) for row in found]
    by_items = {(words.role, words.folded) for words in said if words and words.source == "item"}
    by_messages = {words.role for words in said if words and words.source == "message event"}
    importing = _Import(transcript)
    for row, payload, words in zip(found, payloads, said, strict=True):
        if words and words.source != "item":
            known = (words.role, words.folded) in by_items
            if known or (words.source == "item event" and words.role in by_messages):
                transcript.skip(_kind(row.values, payload))
            else:
                importing.take_words(row, words)
        else:
            importing.take(row, payload)
    return transcript


class _Import:
    """Turns rows into messages."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._unnamed_calls = 0
        self._reported = 0
        """Messages before the newest usage report."""

    def take(self, row: Row[_Row], payload: _Payload) -> None:
        values = row.values
        if values.type == "compacted" and payload.replacement_history and not self._transcript.items:
            for item in payload.replacement_history:
                self._add(row, exact(row.line, item), None)
        elif values.type not in (None, "response_item") and values.payload:
            if payload.type == "token_count" and payload.info is not None:
                self._take_usage(bytes(payload.info.last_token_usage))
            self._transcript.skip(_kind(values, payload))
        elif payload.type == "tool_call":
            self._add(row, self._old_call(row, payload), payload.call_id)
        elif payload.type == "tool_result":
            self._add(row, self._old_result(payload), payload.call_id)
        elif _is_item(payload.type):
            self._add(row, row.once(_item), payload.id)
        else:
            self._transcript.skip(_kind(values, payload))

    def take_words(self, row: Row[_Row], words: _Said) -> None:
        part = {"type": "input_text" if words.role == "user" else "output_text", "text": words.text}
        self._add(row, encoded({"type": "message", "role": words.role, "content": [part]}), None)

    def _take_usage(self, raw: bytes) -> None:
        """Record the usage of the answer in the preceding rows; the event may be repeated."""
        found = tolerant(raw, UsageMembers) if raw else None
        items = self._transcript.items
        if found is not None and len(items) > self._reported:
            items[-1] = items[-1]._replace(usage=found.total())
            self._reported = len(items)

    def _old_call(self, row: Row[_Row], payload: _Payload) -> bytes:
        """A call in an early format without ids, where the next result answers the call."""
        if payload.call_id is None:
            self._unnamed_calls += 1
        name = payload.name or (payload.function.name if payload.function else None)
        return encoded(
            {
                "type": "function_call",
                "call_id": payload.call_id or f"call_{self._unnamed_calls}",
                "name": name or "",
                "arguments": json_text(Raw(exact(row.line, payload.arguments))) or "{}",
            }
        )

    def _old_result(self, payload: _Payload) -> bytes:
        call_id = payload.call_id or f"call_{self._unnamed_calls}"
        return encoded(
            {"type": "function_call_output", "call_id": call_id, "output": json_text(payload.result)}
        )

    def _add(self, row: Row[_Row], raw: bytes, message_id: str | None) -> None:
        stamp = milliseconds(row.values.timestamp)
        self._transcript.items.append(Imported(raw, message_id, stamp, row.span))


def _item(row: Row[_Row]) -> bytes:
    """The response item of a row; the oldest files have the bare item as their row."""
    return exact(row.line, row.values.payload) if row.values.payload else row.line.strip()


def _payload(row: Row[_Row]) -> _Payload:
    """The payload of a row; the oldest files have the bare item as their row."""
    raw = bytes(row.values.payload)
    if not raw and row.values.record_type is None:
        raw = row.line
    return tolerant(raw, _Payload) or _Payload()


def _said(read: Row[_Row]) -> _Said | None:
    row, payload = read.values, read.once(_payload)
    if payload.type == "message" and payload.role in ("user", "assistant"):
        return _as_said(payload.role, _words(payload.content), "item")
    if row.type != "event_msg":
        return None
    if payload.type in ("user_message", "agent_message") and payload.message:
        role = "user" if payload.type == "user_message" else "assistant"
        return _as_said(role, payload.message, "message event")
    item = payload.item
    if payload.type == "item_completed" and item is not None and item.type in ("UserMessage", "AgentMessage"):
        role = "user" if item.type == "UserMessage" else "assistant"
        return _as_said(role, _words(item.content), "item event")
    return None


def _as_said(role: str, text: str, source: str) -> _Said:
    return _Said(role, text, source, fold(text))


def _words(parts: list[_Part] | None) -> str:
    return "\n".join(part.text for part in parts or () if part.text)


def _is_item(kind: str | None) -> bool:
    return kind is not None and (kind in _ITEMS or kind.endswith(("_call", "_output")))


def _kind(row: _Row, payload: _Payload) -> str:
    parts = [row.type or row.record_type or "row without type"]
    if row.payload and payload.type:
        parts.append(payload.type)
    if payload.item is not None and payload.item.type:
        parts.append(payload.item.type)
    return ": ".join(parts)
