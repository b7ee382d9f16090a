"""OpenAI's Responses API, and how Codex uses it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw

from sidecar.gateway.request import (
    HANDLE,
    SYSTEM_ROLES,
    Handle,
    ModelApi,
    ModelRequest,
    Rewrite,
    fingerprint,
    id_in,
    items_of,
    members_of,
    role_of,
    sse,
    text_of,
)
from sidecar.protocol.base import MessageFormat

TRIGGER = "compaction_trigger"
"""Type of the item by which Codex asks for compaction."""
COMPACTION = "compaction"
"""Type of the item that stands for a compacted history."""
SERVER_STATE = ("previous_response_id", "conversation")
"""Members by which the provider keeps the history: there is nothing here for an engine to choose from."""


class ResponsesApi(ModelApi):
    """`POST /v1/responses`."""

    message_format: MessageFormat = "openai-responses"

    def read(self, headers: Mapping[str, str], body: bytes) -> ModelRequest | None:
        """As `ModelApi.read`; a string as input is the message of a user."""
        members = members_of(body)
        if not members or "input" not in members:
            return None
        if any(bytes(members.get(name, b"null")) != b"null" for name in SERVER_STATE):
            return None
        items = items_of(members["input"])
        if items is None:
            if not text_of(members["input"]):
                return None
            part = b'{"type":"input_text","text":' + bytes(members["input"]) + b"}"
            items = [Raw(b'{"type":"message","role":"user","content":[' + part + b"]}")]
        history = [bytes(item) for item in items]
        asked = bool(history) and _type_of(history[-1]) == TRIGGER
        if asked:
            history.pop()
        place = _handle_place(history, self.key)
        handle, since = place if place is not None else (None, 0)
        # Codex repeats its instructions and the user's messages in front of a handle; the latter are stored.
        lead = [Raw(item) for item in history[:since] if role_of(item) in SYSTEM_ROLES]
        thread = id_in(headers, "thread-id", "session-id")
        session = f"codex:{thread}" if thread else _session_id(members, history)
        request = ModelRequest.of(
            members,
            session,
            history[since:],
            fixed=("instructions", "tools"),
            output=("max_output_tokens",),
            is_compaction=asked,
        )
        request.lead, request.handle = lead, handle
        if handle is not None:
            summary = _message("user", handle.summary)
            request.in_full = [*map(bytes, lead), summary, *request.history]
        return request

    def write(self, request: ModelRequest, answer: Rewrite) -> bytes:
        """As `ModelApi.write`."""
        members = dict(request.members)
        items = [Raw(message) for message in answer.messages]
        if answer.user_addition:
            items.append(Raw(_message("user", answer.user_addition)))
        if answer.system_addition:
            items.insert(_system_items(answer.messages), Raw(_message("developer", answer.system_addition)))
        members["input"] = Raw(msgspec.json.encode(items))
        return msgspec.json.encode(members)

    def without_sidecar(self, request: ModelRequest) -> bytes | None:
        """As `ModelApi.without_sidecar`: the provider would refuse our handle, so the summary replaces it."""
        if request.handle is None:
            return None
        return msgspec.json.encode({**request.members, "input": list(map(Raw, request.in_full))})

    def compacted(self, request: ModelRequest, handle: Handle) -> tuple[str, bytes]:
        """As `ModelApi.compacted`: one opaque item, which Codex replays from then on."""
        response = self._compacted_response(request, handle)
        if not request.streams:
            return "application/json", msgspec.json.encode(response)
        created: dict[str, object] = {**response, "output": [], "status": "in_progress", "usage": None}
        [item] = self._output(handle)
        return "text/event-stream; charset=utf-8", sse(
            [
                {"type": "response.created", "response": created, "sequence_number": 0},
                {"type": "response.output_item.added", "output_index": 0, "item": item, "sequence_number": 1},
                {"type": "response.output_item.done", "output_index": 0, "item": item, "sequence_number": 2},
                {"type": "response.completed", "response": response, "sequence_number": 3},
            ]
        )

    def _compacted_response(self, request: ModelRequest, handle: Handle) -> dict[str, object]:
        return {
            "id": f"resp_{fingerprint(handle.session.encode(), str(time.time_ns()).encode())}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "completed",
            "model": request.model,
            "output": self._output(handle),
            "usage": _NO_USAGE,
        }

    def _output(self, handle: Handle) -> list[dict[str, object]]:
        text = handle.encoded(self.key)
        return [{"type": COMPACTION, "id": f"cmp_{fingerprint(text.encode())}", "encrypted_content": text}]


class CompactApi(ResponsesApi):
    """`POST /v1/responses/compact`, which answers with the history to go on with."""

    def read(self, headers: Mapping[str, str], body: bytes) -> ModelRequest | None:
        """As `ModelApi.read`; every request asks for compaction."""
        request = super().read(headers, body)
        if request is not None:
            request.kind, request.streams = "compaction", False
        return request

    def _compacted_response(self, request: ModelRequest, handle: Handle) -> dict[str, object]:
        kept = [Raw(item) for item in request.history if role_of(item) == "user"][-1:]
        answer = super()._compacted_response(request, handle)
        return {**answer, "object": "response.compaction", "output": [*kept, *self._output(handle)]}


_NO_USAGE = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}


def _type_of(item: bytes) -> str:
    found = members_of(item)
    return text_of(found.get("type")) if found is not None else ""


def _handle_place(history: Sequence[bytes], key: bytes) -> tuple[Handle, int] | None:
    """The newest of our handles, and the place behind it."""
    for place in range(len(history), 0, -1):
        found = members_of(history[place - 1]) if HANDLE.encode() in history[place - 1] else None
        if found is not None and text_of(found.get("type")) == COMPACTION:
            handle = Handle.decoded(text_of(found.get("encrypted_content")), key)
            if handle is not None:
                return handle, place
    return None


def _system_items(messages: Sequence[bytes]) -> int:
    """How many items at the beginning are the program's instructions."""
    for place, message in enumerate(messages):
        if role_of(message) not in SYSTEM_ROLES:
            return place
    return len(messages)


def _message(role: str, text: str) -> bytes:
    part = {"type": "input_text", "text": text}
    return msgspec.json.encode({"type": "message", "role": role, "content": [part]})


def _session_id(members: Mapping[str, Raw], history: Sequence[bytes]) -> str:
    """Stands for the beginning of the history where the program has no id of its own."""
    start = _system_items(history)
    return f"responses:{fingerprint(bytes(members.get('instructions', Raw(b''))), *history[: start + 1])}"
