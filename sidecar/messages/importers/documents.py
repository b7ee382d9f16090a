"""Detects the format of a transcript, and imports formats that are lists of messages, even damaged ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from json import JSONDecodeError, JSONDecoder
from typing import cast

import msgspec
from msgspec import Raw, Struct

from sidecar.messages.contract import MessageError
from sidecar.messages.dialects import dialect
from sidecar.messages.dialects.decoding import MessageDecoder, items, json_text
from sidecar.messages.importers import exports
from sidecar.messages.importers.foreign import LISTS, gemini_log, is_aider
from sidecar.messages.importers.transcript import (
    BAD_LINE,
    BYTE_ORDER_MARK,
    TORN_LINE,
    Imported,
    Source,
    Span,
    Text,
    Transcript,
    TranscriptError,
    encoded,
    lines,
    one_line,
    placed_lines,
)
from sidecar.messages.shapes import AI_SDK, FOREIGN, GEMINI, LANGCHAIN, OPENCODE, shapes

FORMATS: tuple[str, ...] = (
    "openai-chat",
    "anthropic-messages",
    "claude-code",
    "codex",
    "pi",
    "openclaw",
    "swe-agent",
    "gemini",
    "ai-sdk",
    "langchain",
    "opencode",
    "kimi",
    "aider",
    "chatgpt",
    "claude-ai",
)

_EXPECTED = (
    "expected a session of Claude Code, Codex, pi, OpenClaw, Gemini CLI, Kimi CLI, Aider or opencode, an "
    "export of ChatGPT or claude.ai, a SWE-agent trajectory, or messages of OpenAI chat completions, "
    "Anthropic, the Vercel AI SDK or LangChain"
)
_LOOK = 50
_CODEX_ROWS = frozenset(
    ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
)
_CODEX_ITEMS = frozenset(("message", "reasoning", "function_call", "function_call_output"))
_PI_ROWS = frozenset(("session", "message", "model_change", "thinking_level_change", "custom_message"))
_CLAUDE_IDS = frozenset(("uuid", "sessionId", "session_id"))
_LISTED = {"openai": "openai-chat", "anthropic": "anthropic-messages"}
"""Dialects whose messages files list, with the name of that format."""
_FOREIGN = {GEMINI: "gemini", AI_SDK: "ai-sdk", LANGCHAIN: "langchain", OPENCODE: "opencode"}
_NAMES = {"openai-responses": "OpenAI's Responses API", "openclaw": "pi or OpenClaw"}
_ANTHROPIC_SIGNS = (b'"tool_use"', b'"tool_result"', b'"thinking"', b'"anthropic_version"', b'"tool_use_id"')


def detect(source: Source) -> str:
    """The name of the file's format, one of `FORMATS`.

    Raises:
        TranscriptError: the format is unknown; the text names similar formats.
    """
    first = next(lines(source), b"").strip()
    if not first:
        raise TranscriptError(f"the file is empty; {_EXPECTED}")
    if is_aider(first):
        return "aider"
    spoken: list[bytes] = []
    for line in islice(lines(source), _LOOK):
        members = _members(line)
        found = _row_format(members) if members else None
        if found == "pi" and _mentions_openclaw(source):
            return "openclaw"
        if found is not None:
            return found
        if members and members.keys() & {"messages", "history"}:
            break
        if members and "role" in members:
            spoken.append(line)
    return _format_of_lists(spoken) if spoken else _document_format(source)


def _row_format(members: dict[str, Raw]) -> str | None:
    kind = _text(members.get("type"))
    if (_text(members.get("role")) or "").startswith("_"):
        return "kimi"
    if "payload" in members and kind in _CODEX_ROWS:
        return "codex"
    if "projectHash" in members and "sessionId" in members:
        return "gemini"
    if "uuid" in members and "parentUuid" in members:
        message = _members(bytes(members["message"])) if "message" in members else None
        if message is not None and "parts" in message and "content" not in message:
            raise TranscriptError(f"the file is a session of Qwen Code, which is not read; {_EXPECTED}")
        return "claude-code"
    if kind in ("user", "assistant") and "message" in members and members.keys() & _CLAUDE_IDS:
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
    return None


def _document_format(source: Source) -> str:
    data = source.read_bytes().removeprefix(b"\xef\xbb\xbf").strip()
    if not is_document(data):
        raise TranscriptError(f"the file is neither JSON nor JSON Lines of a known format; {_EXPECTED}")
    if (export := exports.format_of(data)) is not None:
        return export
    members = _members(data) or {}
    history = _items(members.get("history"))
    messages = _items(members.get("messages") or members.get("contents"))
    if data[:1] == b"[":
        messages = _items(Raw(data))
    elif history is not None:
        found = _format_of_lists(history, "an entry of `history`")
        if found in ("openai-chat", "gemini"):
            return "swe-agent" if found == "openai-chat" else found
        raise TranscriptError(f"the `history` is not that of a SWE-agent trajectory; {_EXPECTED}")
    if not messages:
        raise TranscriptError(f"the JSON has no messages; {_EXPECTED}")
    found = _format_of_lists(messages)
    return "anthropic-messages" if found == "openai-chat" and "anthropic_version" in members else found


def _items(raw: Raw | None) -> list[bytes] | None:
    """The items of an array; `None` if it is not an array."""
    if raw is None or bytes(raw)[:1] != b"[":
        return None
    from sidecar.messages.dialects.decoding import items
    from sidecar.surrogates import mask

    found = items(bytes(raw))
    return list(map(bytes, items(mask(bytes(raw))) or () if found is None else found))


def _format_of_lists(messages: Sequence[bytes], named: str = "a message") -> str:
    """The format of a list of messages, judged by the first ones.

    Raises:
        TranscriptError: the format is unknown, or a message is in a format that is not imported.
    """
    matches = [shapes(message) for message in messages[:_LOOK]]
    for name, written in _FOREIGN.items():
        # Plain text matches several formats; all other messages must be in this one.
        if any(found == frozenset((name,)) for found in matches) and all(
            name in found or len(found) > 1 for found in matches if found
        ):
            return written
    votes: Counter[str] = Counter()
    for message, found in zip(messages, matches, strict=False):
        votes.update(found)
        if found and not found & _LISTED.keys():
            place, other = messages.index(message) + 1, sorted(found)[0]
            close = ", ".join(name for dialect, name in _LISTED.items() if votes[dialect]) or "openai-chat"
            raise TranscriptError(
                f"{named} (number {place}) is in the format of {_NAMES.get(other, other)}, which cannot be "
                f"read from such a file; {close} comes close, where every message has `role` and `content`; "
                f"{_EXPECTED}"
            )
    if not votes:
        raise TranscriptError(f"the file has no messages with `role` and `content`; {_EXPECTED}")
    # Plain-text messages are identical in both.
    best = max(_LISTED, key=lambda dialect: votes[dialect])
    return _LISTED[best]


def message_format_of(data: bytes) -> str:
    """The format of the messages in a damaged document; without Anthropic's blocks, the two are identical."""
    if b'"tool_calls"' in data or b'"tool_call_id"' in data:
        return "openai-chat"
    return "anthropic-messages" if any(sign in data for sign in _ANTHROPIC_SIGNS) else "openai-chat"


def _mentions_openclaw(source: Source) -> bool:
    return any(b"openclaw" in line.lower() for line in islice(lines(source), _LOOK))


def _members(line: bytes) -> dict[str, Raw] | None:
    from sidecar.messages.dialects.decoding import members

    return members(line)


def _text(raw: Raw | None) -> str | None:
    if raw is None or bytes(raw)[:1] != b'"':
        return None
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.DecodeError:
        return None


class _Body(Struct):
    messages: Raw = Raw(b"")
    contents: Raw = Raw(b"")
    history: Raw = Raw(b"")
    system: Raw = Raw(b"")


class _Step(Struct):
    """One entry of a trajectory's `history`."""

    role: str | None = None
    content: Raw = Raw(b"")
    name: str | None = None
    tool_calls: Raw = Raw(b"")
    tool_call_ids: Raw = Raw(b"")


def load_chat(source: Source) -> Transcript:
    """Messages of chat completions: an array, an object with `messages`, or one message a line."""
    return _load_messages(source, "openai")


def load_anthropic(source: Source) -> Transcript:
    """Messages of the Messages API: a request body, an array, or one message a line."""
    return _load_messages(source, "anthropic")


def load_trajectory(source: Source) -> Transcript:
    """The `history` of a SWE-agent trajectory, as messages of chat completions."""
    transcript = Transcript("openai")
    data = _Document(source)
    for span, raw in data.array(_body(data.text).history, "history"):
        step = _step(raw)
        if step is None or step.role is None:
            transcript.skip("entry without role")
        else:
            transcript.items.append(Imported(_message(step), None, None, span))
    return transcript


def load_foreign(source: Source, name: str) -> Transcript:
    """Messages of a program without a dialect of its own, as messages of chat completions."""
    document = _Document(source)
    if name == "gemini" and not is_document(document.text):
        return gemini_log(source)
    body = _Body() if document.text[:1] == b"[" else _body(document.text)
    found = body.messages or body.contents or body.history or Raw(document.text)
    return LISTS[name](document.array(found, "messages"))


def is_document(data: bytes) -> bool:
    """Whether `data` is a single JSON value, as opposed to JSON Lines."""
    try:
        msgspec.json.decode(data, type=Raw)
    except (msgspec.DecodeError, RecursionError):
        from sidecar.surrogates import mask

        try:
            msgspec.json.decode(mask(data), type=Raw)
        except (msgspec.DecodeError, RecursionError):
            return False
    return True


class _Document:
    """The text of a source without a byte order mark and surrounding white space."""

    def __init__(self, source: Source) -> None:
        data = source.read_bytes()
        self.text = data.removeprefix(BYTE_ORDER_MARK).strip()
        self._offset = data.find(self.text)

    def array(self, raw: Raw | bytes, name: str) -> list[tuple[Span, bytes]]:
        """The items of an array in the document, each with its place in the source.

        Raises:
            TranscriptError: the value is not an array.
        """
        array, text = bytes(raw), self.text
        found = items(array)
        if found is None or array not in text:
            # It has, or had, lone surrogate escapes; masking them changes no offset.
            from sidecar.surrogates import mask

            array, text = mask(array), mask(text)
            found = items(array)
        if found is None:
            raise TranscriptError(f"{name} is not a JSON array of messages")
        end = text.find(array)
        placed: list[tuple[Span, bytes]] = []
        for item in map(bytes, found):
            start = text.find(item, end)
            end = start + len(item)
            placed.append((Span(self._offset + start, self._offset + end), self.text[start:end]))
        return placed


def _load_messages(source: Source, message_format: str) -> Transcript:
    transcript = Transcript(message_format)
    array = _array_of_messages(source, transcript)
    found = list(placed_lines(source)) if array is None else array
    read = dialect(message_format).read
    kept = source.kept if isinstance(source, Text) else None
    key = ("line", message_format)

    def checked(message: bytes) -> bytes:
        message.decode()
        read(message)
        return one_line(message.strip())

    for index, (span, message) in enumerate(found):
        if foreign := shapes(message) & set(FOREIGN):
            transcript.skip(f"message of the format {min(foreign)}")
            continue
        try:
            raw = checked(message) if kept is None else kept.once(key, message, partial(checked, message))
        except (MessageError, UnicodeDecodeError):
            is_torn = array is None and index == len(found) - 1 and not message.endswith(b"\n")
            transcript.skip(TORN_LINE if is_torn else BAD_LINE)
        else:
            transcript.items.append(Imported(raw, None, None, span))
    return transcript


def _array_of_messages(source: Source, transcript: Transcript) -> list[tuple[Span, bytes]] | None:
    """The messages of a document, each with its place; `None` if the source has one message per line."""
    if _begins_with_lines(source):
        return None
    document = _Document(source)
    data = document.text
    if data[:1] == b"[":
        return document.array(data, "the file")
    if is_document(data) and (body := _body(data)).messages:
        if body.system:
            transcript.skip("system prompt of the request")
        return document.array(body.messages, "messages")
    return None


def _begins_with_lines(source: Source) -> bool:
    """Whether the first line is a complete object and another line follows, as in JSON Lines."""
    first, second = (*islice(lines(source), 2), b"", b"")[:2]
    return bool(second) and first.lstrip()[:1] == b"{" and is_document(first)


def _body(data: bytes) -> _Body:
    try:
        return MessageDecoder(_Body)(data)
    except MessageError:
        raise TranscriptError("the file is not a JSON object") from None


def _step(raw: bytes) -> _Step | None:
    try:
        return MessageDecoder(_Step)(raw)
    except MessageError:
        return None


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
    """A list, as JSON or, as in some trajectories, as Python source text."""
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


_MOST_LOOKS = 16
"""Average number of times a character may be scanned; inside broken objects, it is once per level."""
_LEAST_LOOK = 64
_DEEP_LOOK = 65_536
"""Assumed cost, in characters, of a scan that ends in too deep nesting."""

_decode = JSONDecoder().raw_decode


def salvage(source: Source) -> Transcript:
    """The complete messages with a `role`, in order; may be empty."""
    data = source.read_bytes()
    name = "anthropic" if message_format_of(data) == "anthropic-messages" else "openai"
    transcript = Transcript(name)
    read = dialect(name).read
    for span in _objects_with_role(data):
        message = data[span.start : span.end]
        try:
            message.decode()
            read(message)
        except (MessageError, UnicodeDecodeError):
            transcript.skip("bad message")
        else:
            transcript.items.append(Imported(one_line(message), None, None, span))
    return transcript


def _objects_with_role(data: bytes) -> Iterator[Span]:
    """The outermost complete objects with a `role`; broken objects are searched inside."""
    text = data.decode(errors="surrogateescape")
    counted = offset = 0
    left = _MOST_LOOKS * (len(text) + _LEAST_LOOK)
    position = text.find("{")
    while position >= 0 and left > 0:
        end, is_message = _look(text, position)
        left -= max(end - position, _LEAST_LOOK)
        if not is_message:
            position = text.find("{", position + 1)
            continue
        start = offset + _size(text[counted:position])
        counted, offset = end, start + _size(text[position:end])
        yield Span(start, offset)
        position = text.find("{", end)


def _look(text: str, position: int) -> tuple[int, bool]:
    """How far the object at `position` is readable, and whether it is a message."""
    try:
        value, end = cast("tuple[dict[str, object], int]", _decode(text, position))
    except JSONDecodeError as problem:
        return problem.pos, False
    except RecursionError:
        return position + _DEEP_LOOK, False
    return end, isinstance(value.get("role"), str)


def _size(text: str) -> int:
    return len(text.encode(errors="surrogateescape"))
