"""Imports transcripts that are one JSON document: request bodies, message lists, trajectories."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec
from msgspec import Raw, Struct

from sidecar.messages.contract import MessageError
from sidecar.messages.dialects import dialect
from sidecar.messages.dialects.decoding import MessageDecoder, json_text, tolerant
from sidecar.messages.dialects.splicing import items
from sidecar.messages.importers.rows import BAD_LINE, TORN_LINE, encoded, lines, one_line
from sidecar.messages.importers.transcript import Imported, Transcript, TranscriptError


class _Body(Struct):
    messages: Raw = Raw(b"")
    history: Raw = Raw(b"")
    system: Raw = Raw(b"")


class _Step(Struct):
    """One entry of a trajectory's `history`."""

    role: str | None = None
    content: Raw = Raw(b"")
    name: str | None = None
    tool_calls: Raw = Raw(b"")
    tool_call_ids: Raw = Raw(b"")


def load_chat(path: Path) -> Transcript:
    """Messages of chat completions: an array, an object with `messages`, or one message a line."""
    return _load_messages(path, "openai")


def load_anthropic(path: Path) -> Transcript:
    """Messages of the Messages API: a request body, an array, or one message a line."""
    return _load_messages(path, "anthropic")


def load_trajectory(path: Path) -> Transcript:
    """The `history` of a SWE-agent trajectory, as messages of chat completions."""
    transcript = Transcript("openai")
    for raw in _array(_body(path.read_bytes()).history, "history"):
        step = tolerant(bytes(raw), _Step)
        if step is None or step.role is None:
            transcript.skip("entry without role")
        else:
            transcript.items.append(Imported(_message(step), None, None))
    return transcript


def is_document(data: bytes) -> bool:
    """Whether `data` is one JSON value and not lines of them."""
    try:
        msgspec.json.decode(data, type=Raw)
    except (msgspec.DecodeError, RecursionError):
        from sidecar.surrogates import mask

        try:
            msgspec.json.decode(mask(data), type=Raw)
        except (msgspec.DecodeError, RecursionError):
            return False
    return True


def _load_messages(path: Path, message_format: str) -> Transcript:
    transcript = Transcript(message_format)
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf").strip()
    body = _Body()
    if data[:1] == b"[":
        found = _array(Raw(data), "the file")
    elif is_document(data) and (body := _body(data)).messages:
        found = _array(body.messages, "messages")
    else:
        found = [Raw(line) for line in lines(path)]
    if body.system:
        transcript.skip("system prompt of the request")
    read = dialect(message_format).read
    for raw in found:
        message = bytes(raw)
        try:
            message.decode()
            read(message)
        except (MessageError, UnicodeDecodeError):
            transcript.skip(TORN_LINE if data.endswith(message) and raw is found[-1] else BAD_LINE)
        else:
            transcript.items.append(Imported(one_line(message.strip()), None, None))
    return transcript


def _body(data: bytes) -> _Body:
    try:
        return MessageDecoder(_Body)(data)
    except MessageError:
        raise TranscriptError("the file is no JSON object") from None


def _array(raw: Raw, name: str) -> list[Raw]:
    found = items(bytes(raw))
    if found is None:
        raise TranscriptError(f"{name} is no JSON array of messages")
    return found


def _message(step: _Step) -> bytes:
    made: dict[str, object] = {"role": step.role, "content": Raw(one_line(bytes(step.content)) or b"null")}
    calls = _list(step.tool_calls)
    if step.role == "assistant" and calls:
        made["tool_calls"] = [{"type": "function", **call} for call in calls if isinstance(call, dict)]
    if step.role == "tool":
        ids = _list(step.tool_call_ids)
        made["tool_call_id"] = ids[0] if ids else ""
    return encoded(made)


def _list(raw: Raw) -> list[object]:
    """A list, also one that was written down as Python text, as some trajectories have it."""
    text = json_text(raw)
    if not text:
        return []
    try:
        return msgspec.json.decode(text, type=list[object])
    except msgspec.DecodeError:
        pass
    from ast import literal_eval

    try:
        found: object = literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    return cast("list[object]", found) if isinstance(found, list) else []
