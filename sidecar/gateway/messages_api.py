"""Anthropic's Messages API, and how Claude Code uses it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec import Raw

from sidecar.gateway.request import (
    HANDLE,
    Handle,
    ModelApi,
    ModelRequest,
    Rewrite,
    fingerprint,
    id_in,
    items_of,
    members_of,
    sse,
    text_of,
)
from sidecar.protocol.base import MessageFormat

SESSION_HEADER = "x-claude-code-session-id"
COMPACTION = "CRITICAL: Respond with TEXT ONLY"
"""Begins the text by which Claude Code asks for a summary of the session."""
MOST_MARKERS = 4
"""Cache markers that the API takes in one request."""
BEHIND = "contextSidecarBehind"
"""Member by which a message carries the system messages behind it while the engine has it."""

_MARKER = b'"cache_control"'
_SYSTEM = re.compile(rb'"role"\s*:\s*"system"')
_HANDLE_LINE = re.compile(rf"\[{re.escape(HANDLE)}[A-Za-z0-9_-]+\]")
_NOT_MARKED = frozenset((b'"thinking"', b'"redacted_thinking"'))


class MessagesApi(ModelApi):
    """`POST /v1/messages`."""

    message_format: MessageFormat = "anthropic"

    def read(self, headers: Mapping[str, str], body: bytes) -> ModelRequest | None:
        """As `ModelApi.read`; what Claude Code asks on the side has neither tools nor much history."""
        members = members_of(body)
        raw = items_of(members["messages"]) if members and "messages" in members else None
        if not members or not raw:
            return None
        program = id_in(headers, SESSION_HEADER)
        if program and "tools" not in members and len(raw) < 3:
            return None
        messages = list(_joined([canonical(bytes(message)) for message in raw]))
        asked = _without_request(messages[-1]) if program else None
        if asked is not None:
            messages[-1:] = [asked] if asked else []
        if not messages:
            return None
        opening, place, lead = _opening(messages), _handle_place(messages, self.key), _behind(messages[0])
        handle, since = place if place is not None else (None, 0)
        session = handle.session if handle is not None and program in handle.session else ""
        request = ModelRequest.of(
            members,
            session or _session_id(program, members, opening),
            messages[since:],
            fixed=("system", "tools"),
            output=("max_tokens",),
            is_compaction=asked is not None,
        )
        request.fixed += map(bytes, lead)
        request.lead, request.handle, request.in_full = lead, handle, messages
        return request

    def write(self, request: ModelRequest, answer: Rewrite) -> bytes:
        """As `ModelApi.write`: system messages stay where they were, cache markers follow the stable part."""
        members = dict(request.members)
        kept = list(answer.messages)
        if request.lead and kept and _behind(kept[0]) != request.lead:
            # The program's own instructions stood behind its first message, which is not in the answer.
            kept[0] = _with_behind(kept[0], [*request.lead, *_behind(kept[0])])
        if answer.user_addition:
            _append_text(kept, answer.user_addition)
        marker = _first_marker(request.members)
        if marker is not None:
            taken = sum(part.count(_MARKER) for part in request.fixed)
            _mark(kept, answer.stable, marker, MOST_MARKERS - taken)
        members["messages"] = Raw(msgspec.json.encode(list(_separated(kept))))
        if answer.system_addition:
            members["system"] = _with_system(members.get("system"), answer.system_addition)
        return msgspec.json.encode(members)

    def compacted(self, request: ModelRequest, handle: Handle) -> tuple[str, bytes]:
        """As `ModelApi.compacted`: a summary, which Claude Code puts in front of what follows."""
        text = f"<summary>\n{handle.summary}\n\n[{Handle(handle.session, '').encoded(self.key)}]\n</summary>"
        message: dict[str, object] = {
            "id": f"msg_{fingerprint(handle.session.encode(), str(time.time_ns()).encode())}",
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        if not request.streams:
            whole = {**message, "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
            return "application/json", msgspec.json.encode(whole)
        block = {"type": "text", "text": ""}
        stop = {"stop_reason": "end_turn", "stop_sequence": None}
        return "text/event-stream; charset=utf-8", sse(
            [
                {"type": "message_start", "message": message},
                {"type": "content_block_start", "index": 0, "content_block": block},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 0}},
                {"type": "message_stop"},
            ]
        )


def canonical(raw: bytes) -> bytes:
    """The message without cache markers and white space, its content as a list.

    Programs send one message in each of these forms, and the sidecar is to see one message.
    """
    with suppress(msgspec.DecodeError):  # half of a surrogate pair
        raw = msgspec.json.format(raw, indent=-1)
    if _MARKER not in raw and b'"content":[' in raw:
        return raw
    found = members_of(raw)
    content = None if found is None else found.get("content")
    if found is None or content is None:
        return raw
    if bytes(content).startswith(b'"'):
        if bytes(content) == b'""':
            return raw
        found["content"] = Raw(b'[{"type":"text","text":' + bytes(content) + b"}]")
    else:
        found["content"] = _unmarked(content)
    return msgspec.json.encode(found)


def _unmarked(content: Raw) -> Raw:
    blocks = items_of(content)
    if blocks is None or _MARKER not in bytes(content):
        return content
    bare: list[Raw] = []
    for block in blocks:
        found = members_of(block)
        if found is None or _MARKER not in bytes(block):
            bare.append(block)
            continue
        found.pop("cache_control", None)
        if (inner := found.get("content")) is not None:
            found["content"] = _unmarked(inner)
        bare.append(Raw(msgspec.json.encode(found)))
    return Raw(msgspec.json.encode(bare))


def _joined(messages: Sequence[bytes]) -> Iterator[bytes]:
    """The messages, each with the system messages behind it as a member, so that they stay or go together."""
    waiting: bytes | None = None
    behind: list[Raw] = []
    for message in messages:
        if waiting is not None and _is_system(message):
            behind.append(Raw(message))
            continue
        if waiting is not None:
            yield _with_behind(waiting, behind)
        waiting, behind = message, []
    if waiting is not None:
        yield _with_behind(waiting, behind)


def _is_system(message: bytes) -> bool:
    if _SYSTEM.search(message) is None:
        return False
    found = members_of(message)
    return found is not None and text_of(found.get("role")) == "system"


def _with_behind(message: bytes, behind: Sequence[Raw]) -> bytes:
    found = members_of(message) if behind else None
    if found is None:
        return message
    found[BEHIND] = Raw(msgspec.json.encode(list(behind)))
    return msgspec.json.encode(found)


def _behind(message: bytes) -> list[Raw]:
    found = members_of(message) if BEHIND.encode() in message else None
    return (items_of(found[BEHIND]) or []) if found is not None and BEHIND in found else []


def _separated(messages: Sequence[bytes]) -> Iterator[Raw]:
    """The messages as the API takes them, one system message at most behind each."""
    for message in messages:
        behind = _behind(message)
        if not behind:
            yield Raw(message)
            continue
        found = members_of(message)
        assert found is not None
        del found[BEHIND]
        yield Raw(msgspec.json.encode(found))
        blocks = [block for system in behind for block in _blocks(bytes(system))]
        yield (
            behind[0] if len(behind) == 1 else Raw(msgspec.json.encode({"role": "system", "content": blocks}))
        )


def _blocks(message: bytes) -> list[Raw]:
    found = members_of(canonical(message))
    return (items_of(found["content"]) or []) if found is not None and "content" in found else []


def _texts(message: bytes) -> Iterator[str]:
    return filter(None, map(_text_of_block, _blocks(message)))


def _text_of_block(block: Raw) -> str:
    found = members_of(block)
    return text_of(found.get("text")) if found is not None and text_of(found.get("type")) == "text" else ""


def _without_request(message: bytes) -> bytes | None:
    """The message without the request for a summary; `None` where it holds none, empty if nothing is left."""
    blocks = _blocks(message)
    rest = [block for block in blocks if not _text_of_block(block).startswith(COMPACTION)]
    found = members_of(message)
    if len(rest) == len(blocks) or found is None:
        return None
    found["content"] = Raw(msgspec.json.encode(rest))
    return msgspec.json.encode(found) if rest else b""


def _opening(messages: Sequence[bytes]) -> bytes:
    """What the first message of the user says last: what stands before it changes from request to request."""
    texts = list(_texts(messages[0]))
    return texts[-1].encode("utf-8", "surrogatepass") if texts else messages[0]


def _handle_place(messages: Sequence[bytes], key: bytes) -> tuple[Handle, int] | None:
    """The newest of our handles, and the place behind the message that holds it.

    Anybody can write such a text: only a signed handle makes the messages before it give way.
    """
    for place in range(len(messages) - 1, 0, -1):
        if HANDLE.encode() not in messages[place - 1]:
            continue
        for text in _texts(messages[place - 1]):
            for line in _HANDLE_LINE.finditer(text):
                handle = Handle.decoded(line[0][1:-1], key)
                if handle is not None and handle.session:
                    return handle, place
    return None


def _session_id(program: str, members: Mapping[str, Raw], opening: bytes) -> str:
    """Subagents of one Claude Code session share its id; each has an opening of its own."""
    if program:
        return f"claude-code:{program}:{fingerprint(opening)}"
    return f"messages:{fingerprint(bytes(members.get('system', Raw(b''))), opening)}"


def _first_marker(members: Mapping[str, Raw]) -> Raw | None:
    for message in items_of(members["messages"]) or ():
        if _MARKER not in bytes(message):
            continue
        for block in _blocks_as_sent(message):
            found = members_of(block)
            if found is not None and "cache_control" in found:
                return found["cache_control"]
    return None


def _blocks_as_sent(message: Raw) -> list[Raw]:
    found = members_of(message)
    return (items_of(found["content"]) or []) if found is not None and "content" in found else []


def _mark(messages: list[bytes], stable: int, marker: Raw, room: int) -> None:
    """Set markers at the end of the stable part and at the end, as many as there is room for."""
    places = [place for place in dict.fromkeys((stable - 1, len(messages) - 1)) if 0 <= place < len(messages)]
    for place in places[-room:] if room > 0 else ():
        found = members_of(messages[place])
        blocks = _blocks(messages[place])
        for position in range(len(blocks) - 1, -1, -1):
            block = members_of(blocks[position])
            if found is None or block is None or bytes(block.get("type", b"")) in _NOT_MARKED:
                continue
            block["cache_control"] = marker
            blocks[position] = Raw(msgspec.json.encode(block))
            found["content"] = Raw(msgspec.json.encode(blocks))
            messages[place] = msgspec.json.encode(found)
            break


def _append_text(messages: list[bytes], text: str) -> None:
    """Add `text` to the newest message of the user."""
    for place in range(len(messages) - 1, -1, -1):
        found = members_of(messages[place])
        if found is None or text_of(found.get("role")) != "user":
            continue
        blocks = [*_blocks(messages[place]), Raw(msgspec.json.encode({"type": "text", "text": text}))]
        found["content"] = Raw(msgspec.json.encode(blocks))
        messages[place] = msgspec.json.encode(found)
        return


def _with_system(system: Raw | None, text: str) -> Raw:
    blocks = items_of(system) if system is not None else []
    if blocks is None:
        blocks = [Raw(msgspec.json.encode({"type": "text", "text": text_of(system)}))]
    return Raw(msgspec.json.encode([*blocks, {"type": "text", "text": text}]))
