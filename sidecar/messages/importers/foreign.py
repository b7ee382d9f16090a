"""Imports transcripts of programs without a dialect of their own, as messages of chat completions.

Keeps text, calls, results, images, ids and times. Drops thinking, for which chat completions have no place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple, cast

from msgspec import Raw, Struct, field

from sidecar.messages.contract import MessageError
from sidecar.messages.dialects.decoding import MessageDecoder, items, json_text, with_members
from sidecar.messages.importers.transcript import (
    Imported,
    Shape,
    Source,
    Span,
    Transcript,
    encoded,
    milliseconds,
    one_line,
    placed_lines,
    rows,
)

Placed = Sequence[tuple[Span, bytes]]
"""Messages of a document, each with its place in the source."""


class Part(NamedTuple):
    """A part of a message: a text, or an image by its URL."""

    text: str | None
    image: str | None = None


class Call(NamedTuple):
    """A tool call, with the id that its program assigned, if any."""

    id: str | None
    name: str
    arguments: str
    """JSON text."""


class Chat:
    """Builds messages of chat completions from what another program recorded."""

    def __init__(self) -> None:
        self.transcript = Transcript("openai")
        self._unanswered: list[tuple[Call, str]] = []
        """Calls without a result yet, each with the id for its result."""
        self._calls = 0

    def say(
        self,
        span: Span,
        role: str,
        parts: Sequence[Part],
        calls: Iterable[Call] = (),
        *,
        id: str | None = None,
        at: int | None = None,
    ) -> None:
        """Add a message if it has parts or calls; `at` is in milliseconds since 1970."""
        made: dict[str, object] = {"role": role, "content": _content(parts)}
        called: list[object] = []
        for call in calls:
            self._calls += 1
            named = call.id or f"call_{self._calls}"
            self._unanswered.append((call, named))
            function = {"name": call.name, "arguments": call.arguments or "{}"}
            called.append({"id": named, "type": "function", "function": function})
        if called:
            made["tool_calls"] = called
        if parts or called:
            self.transcript.items.append(Imported(encoded(made), id, at, span))

    def answer(
        self, span: Span, id: str | None, name: str | None, text: str, *, at: int | None = None
    ) -> None:
        """Add the result of the call with this id, or without ids, of the oldest open call with this name."""
        for index, (call, named) in enumerate(self._unanswered):
            if id == call.id if id and call.id else name in (None, "", call.name):
                del self._unanswered[index]
                made: dict[str, object] = {"role": "tool", "tool_call_id": named, "content": text}
                self.transcript.items.append(Imported(encoded(made), None, at, span))
                return
        self.transcript.skip("result without its call")


def texts(*found: str | None) -> list[Part]:
    """The texts as parts, without empty ones."""
    return [Part(text) for text in found if text]


def _content(parts: Sequence[Part]) -> object:
    if not any(part.image for part in parts):
        return "\n\n".join(part.text or "" for part in parts) if parts else None
    return [
        {"type": "image_url", "image_url": {"url": part.image}}
        if part.image
        else {"type": "text", "text": part.text or ""}
        for part in parts
    ]


def as_text(value: Raw) -> str:
    """A result as text: a string unchanged, anything else as JSON; empty for null."""
    return one_line(json_text(value).encode()).decode()


def as_json(value: Raw) -> str:
    """Arguments as a JSON object; a string may already contain one."""
    text = as_text(value)
    return text if text[:1] == "{" else encoded({"input": text}).decode() if text else "{}"


_decoder = cache(MessageDecoder)


def decoded(raw: bytes, shape: type[Shape]) -> Shape:
    """An object decoded as `shape`; empty if it is not an object."""
    try:
        return cast("MessageDecoder[Shape]", _decoder(shape))(raw)
    except MessageError:
        return shape()


def objects(value: Raw, shape: type[Shape]) -> list[Shape]:
    """The objects of an array, each as `shape`; empty if it is not an array."""
    found = items(bytes(value)) if bytes(value)[:1] == b"[" else None
    return [decoded(bytes(item), shape) for item in found or ()]


# --- Gemini: checkpoints and request bodies have contents with parts, session files have records ------------


class _GeminiFunction(Struct):
    id: str | None = None
    name: str = ""
    args: Raw = Raw(b"")
    response: Raw = Raw(b"")


class _Blob(Struct):
    mimeType: str = ""
    data: str = ""


class _GeminiPart(Struct):
    text: str | None = None
    thought: bool | None = None
    functionCall: _GeminiFunction | None = None
    functionResponse: _GeminiFunction | None = None
    inlineData: _Blob | None = None


class _GeminiToolCall(Struct):
    id: str | None = None
    name: str = ""
    args: Raw = Raw(b"")
    result: Raw = Raw(b"")
    resultDisplay: Raw = Raw(b"")


class _GeminiMessage(Struct):
    role: str | None = None
    parts: Raw = Raw(b"")
    # In records of session files.
    type: str | None = None
    id: str | None = None
    timestamp: str | None = None
    content: Raw = Raw(b"")
    toolCalls: Raw = Raw(b"")


class _Output(Struct):
    output: Raw = Raw(b"")
    error: Raw = Raw(b"")


class _GeminiRow(Struct):
    """A line of a session file, which is a log of what was recorded."""

    id: str | None = None
    type: str | None = None
    rewind: str | None = field(default=None, name="$rewindTo")


def gemini_log(source: Source) -> Transcript:
    """A session of Gemini CLI as newer versions write it: a line for each record, some written again."""
    left_out = Transcript("openai")
    told: dict[str, tuple[Span, bytes]] = {}
    for row in rows(source, _GeminiRow, left_out):
        values = row.values
        if values.rewind is not None:
            # The record and what follows are taken back; all of them where it is not known.
            ids = list(told)
            for id in ids[ids.index(values.rewind) if values.rewind in told else 0 :]:
                del told[id]
        elif values.id is None or values.type is None:
            left_out.skip("row that is no message")
        else:
            told[values.id] = row.span, row.line.strip()
    transcript = gemini(list(told.values()))
    for reason, count in left_out.skipped.items():
        transcript.skipped[reason] = transcript.skipped.get(reason, 0) + count
    return transcript


def gemini(placed: Placed) -> Transcript:
    """Messages of Gemini: `contents` of the API, checkpoints and session files of Gemini CLI."""
    chat = Chat()
    for span, raw in placed:
        message = decoded(raw, _GeminiMessage)
        at = milliseconds(message.timestamp)
        if message.type is not None and message.role is None:
            if message.type not in ("user", "gemini", "model"):
                chat.transcript.skip(message.type)
                continue
            said = _gemini_parts(message.content or message.parts)
            tools = objects(message.toolCalls, _GeminiToolCall)
        else:
            said, tools = _gemini_parts(message.parts), []
        calls = [Call(one.id, one.name, as_json(one.args)) for one in tools]
        for part in said:
            if (call := part.functionCall) is not None:
                calls.append(Call(call.id, call.name, as_json(call.args)))
            if (result := part.functionResponse) is not None:
                chat.answer(span, result.id, result.name, _gemini_result(result.response), at=at)
        is_model = message.role == "model" or (message.role is None and message.type in ("gemini", "model"))
        role = "assistant" if is_model else "user"
        chat.say(span, role, _gemini_said(said), calls, id=message.id, at=at)
        for tool in tools:
            results = [part.functionResponse for part in _gemini_parts(tool.result)]
            outputs = [_gemini_result(found.response) for found in results if found is not None]
            chat.answer(span, tool.id, tool.name, "\n".join(outputs) or as_text(tool.resultDisplay), at=at)
    return chat.transcript


def _gemini_parts(value: Raw) -> list[_GeminiPart]:
    raw = bytes(value)
    if raw[:1] == b'"':
        return [_GeminiPart(text=json_text(value))]
    return [decoded(raw, _GeminiPart)] if raw[:1] == b"{" else objects(value, _GeminiPart)


def _gemini_said(parts: Iterable[_GeminiPart]) -> list[Part]:
    said: list[Part] = []
    for part in parts:
        if part.text and not part.thought:
            said.append(Part(part.text))
        if (blob := part.inlineData) is not None and blob.mimeType.startswith("image/"):
            said.append(Part(None, f"data:{blob.mimeType};base64,{blob.data}"))
    return said


def _gemini_result(response: Raw) -> str:
    found = decoded(bytes(response), _Output)
    return as_text(found.output) or as_text(found.error) or as_text(response)


# --- Vercel AI SDK and opencode: messages have parts, and a result is next to its call ----------------------


class _ToolState(Struct):
    """The state of a tool part in opencode."""

    status: str | None = None
    input: Raw = Raw(b"")
    output: Raw = Raw(b"")
    error: Raw = Raw(b"")


class _Invocation(Struct):
    state: str | None = None
    toolCallId: str | None = None
    toolName: str = ""
    args: Raw = Raw(b"")
    result: Raw = Raw(b"")


class _Part(Struct):
    type: str = ""
    text: str | None = None
    ignored: bool | None = None
    toolCallId: str | None = None
    toolName: str = ""
    input: Raw = Raw(b"")
    args: Raw = Raw(b"")
    output: Raw = Raw(b"")
    result: Raw = Raw(b"")
    errorText: Raw = Raw(b"")
    toolInvocation: _Invocation | None = None
    mediaType: str = ""
    mime: str = ""
    url: str | None = None
    filename: str | None = None
    image: str | None = None
    # In opencode.
    callID: str | None = None
    tool: str = ""
    state: Raw = Raw(b"")


class _Time(Struct):
    created: int | float | None = None


class _Info(Struct):
    id: str | None = None
    role: str = ""
    time: _Time | None = None


class _PartsMessage(Struct):
    id: str | None = None
    role: str = ""
    parts: Raw = Raw(b"")
    content: Raw = Raw(b"")
    toolInvocations: Raw = Raw(b"")
    createdAt: str | int | float | None = None
    info: _Info | None = None


class _Step:
    """One step of a model: its text, its calls and their results."""

    def __init__(self) -> None:
        self.said: list[Part] = []
        self.calls: list[Call] = []
        self.results: list[tuple[str | None, str, str]] = []
        """Id, name and result of each call that has a result."""


def ai_sdk(placed: Placed) -> Transcript:
    """Messages of the Vercel AI SDK: UI messages with `parts`, and model messages."""
    chat = Chat()
    for span, raw in placed:
        message = decoded(raw, _PartsMessage)
        parts = objects(message.parts, _Part) or objects(message.content, _Part)
        if not parts:
            parts = [_Part(type="text", text=json_text(message.content))]
        steps = _steps(parts)
        if not any(part.toolInvocation for part in parts):
            for invocation in objects(message.toolInvocations, _Invocation):
                _invoke(steps[-1], invocation)
        _say_steps(chat, span, message.role, steps, message.id, milliseconds(message.createdAt))
    return chat.transcript


def opencode(placed: Placed) -> Transcript:
    """Messages of `opencode export`."""
    chat = Chat()
    for span, raw in placed:
        message = decoded(raw, _PartsMessage)
        info = message.info or _Info()
        at = milliseconds(info.time.created if info.time else None)
        _say_steps(chat, span, info.role, _steps(objects(message.parts, _Part)), info.id, at)
    return chat.transcript


def _say_steps(chat: Chat, span: Span, role: str, steps: list[_Step], id: str | None, at: int | None) -> None:
    if role not in ("system", "user", "assistant", "tool"):
        chat.transcript.skip(f"message of the role {role!r}" if role else "message without role")
        return
    for step in steps:
        if role != "tool":
            chat.say(span, role, step.said, step.calls, id=id, at=at)
        for call_id, name, text in step.results:
            chat.answer(span, call_id, name, text, at=at)


def _steps(parts: Iterable[_Part]) -> list[_Step]:
    """The parts divided into steps; `step-start`, or text after a tool part, begins a new step."""
    steps = [_Step()]
    for part in parts:
        said = _said(part)
        if part.type == "step-start" or (said and steps[-1].calls):
            steps.append(_Step())
        step = steps[-1]
        step.said += said
        if (invocation := part.toolInvocation) is not None:
            _invoke(step, invocation)
        elif part.type == "tool":
            state = decoded(bytes(part.state), _ToolState)
            step.calls.append(Call(part.callID, part.tool, as_json(state.input)))
            if state.status in ("completed", "error"):
                text = as_text(state.output if state.status == "completed" else state.error)
                step.results.append((part.callID, part.tool, text))
        elif part.type == "tool-result":
            step.results.append((part.toolCallId, part.toolName, _tool_output(part)))
        elif part.type == "dynamic-tool" or part.type.startswith("tool-"):
            is_named = part.type in ("dynamic-tool", "tool-call")
            name = part.toolName if is_named else part.type.removeprefix("tool-")
            step.calls.append(
                Call(part.toolCallId, name, as_json(part.input) if part.input else as_json(part.args))
            )
            state = json_text(part.state)
            if state.startswith("output-"):
                text = as_text(part.errorText if state == "output-error" else part.output)
                step.results.append((part.toolCallId, name, text))
    return [step for step in steps if step.said or step.calls or step.results] or steps[:1]


def _said(part: _Part) -> list[Part]:
    if part.type == "text":
        return [] if part.ignored else texts(part.text)
    media = part.mediaType or part.mime
    if part.type == "image" or (part.type == "file" and media.startswith("image/")):
        return [Part(None, url)] if (url := part.image or part.url) else []
    if part.type == "file":
        return texts(f"[file {part.filename or media or part.url}]")
    return []


def _invoke(step: _Step, invocation: _Invocation) -> None:
    step.calls.append(Call(invocation.toolCallId, invocation.toolName, as_json(invocation.args)))
    if invocation.state == "result":
        step.results.append((invocation.toolCallId, invocation.toolName, as_text(invocation.result)))


class _ToolOutput(Struct):
    type: str | None = None
    value: Raw = Raw(b"")


def _tool_output(part: _Part) -> str:
    output = decoded(bytes(part.output), _ToolOutput)
    return as_text(output.value) if output.type else as_text(part.output) or as_text(part.result)


# --- LangChain: `dumpd`, `messages_to_dict` and plain dumps -------------------------------------------------

_LANGCHAIN_ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
}


class _LangChainCall(Struct):
    id: str | None = None
    name: str = ""
    args: Raw = Raw(b"")


class _LangChainData(Struct):
    type: str | None = None
    id: str | None = None
    name: str | None = None
    content: Raw = Raw(b"")
    tool_calls: Raw = Raw(b"")
    tool_call_id: str | None = None


class _LangChainMessage(_LangChainData):
    data: Raw = Raw(b"")
    kwargs: Raw = Raw(b"")


class _LangChainPart(Struct):
    type: str = ""
    text: str | None = None
    image_url: Raw = Raw(b"")


class _Url(Struct):
    url: str = ""


def langchain(placed: Placed) -> Transcript:
    """Messages of LangChain, in any of its three serialisations."""
    chat = Chat()
    for span, raw in placed:
        outer = decoded(raw, _LangChainMessage)
        inner = bytes(outer.data) or bytes(outer.kwargs)
        data = decoded(inner, _LangChainData) if inner else outer
        kind = (outer.type if outer.type != "constructor" else data.type) or ""
        role = _LANGCHAIN_ROLES.get(kind.removesuffix("MessageChunk").lower())
        if role is None:
            chat.transcript.skip(f"message of the type {kind!r}" if kind else "message without type")
        elif role == "tool":
            said = _langchain_said(data.content)
            text = "\n\n".join(part.text for part in said if part.text)
            chat.answer(span, data.tool_call_id, data.name, text)
        else:
            calls = [
                Call(one.id, one.name, as_json(one.args)) for one in objects(data.tool_calls, _LangChainCall)
            ]
            chat.say(span, role, _langchain_said(data.content), calls, id=data.id)
    return chat.transcript


def _langchain_said(content: Raw) -> list[Part]:
    if bytes(content)[:1] != b"[":
        return texts(as_text(content))
    said: list[Part] = []
    for item in items(bytes(content)) or ():
        raw = bytes(item)
        part = decoded(raw, _LangChainPart)
        url = decoded(bytes(part.image_url), _Url).url or json_text(part.image_url)
        if raw[:1] == b'"':
            said += texts(json_text(item))
        elif part.type == "text":
            said += texts(part.text)
        elif part.type == "image_url" and url:
            said.append(Part(None, url))
    return said


# --- Kimi CLI and Aider -------------------------------------------------------------------------------------


class _KimiRow(Struct):
    role: str | None = None
    content: Raw = Raw(b"")


class _Kind(Struct):
    type: str | None = None


def kimi(source: Source) -> Transcript:
    """The `context.jsonl` of Kimi CLI: messages of chat completions, mixed with rows of metadata."""
    transcript = Transcript("openai")
    for line, row, span, _ in rows(source, _KimiRow, transcript):
        if row.role is None or row.role.startswith("_"):
            transcript.skip(row.role or "row without role")
            continue
        raw = one_line(line.strip())
        parts = items(bytes(row.content)) if bytes(row.content)[:1] == b"[" else None
        spoken = [part for part in parts or () if decoded(bytes(part), _Kind).type != "think"]
        if parts is not None and len(spoken) < len(parts):
            raw = with_members(raw, {"content": encoded({"": spoken})[4:-1] if spoken else b"null"})
        transcript.items.append(Imported(raw, None, None, span))
    return transcript


_AIDER_START = re.compile(rb"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")


def is_aider(line: bytes) -> bool:
    """Whether a chat history of Aider begins with this line."""
    return _AIDER_START.match(line) is not None


def aider(source: Source) -> Transcript:
    """The `.aider.chat.history.md` of Aider: headings are from the user, quotations are Aider's own notes."""
    chat, said = Chat(), _Lines()
    start: int | None = None
    for span, line in placed_lines(source):
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if found := _AIDER_START.match(line):
            said.flush(chat, start)
            start = milliseconds(found[1].decode())
            chat.transcript.skip("start of a chat")
        elif text.startswith("> "):
            chat.transcript.skip("note of Aider")
        elif text.startswith("#### "):
            said.add(chat, "user", text.removeprefix("#### "), span, start)
        else:
            said.add(chat, "assistant", text, span, start)
    said.flush(chat, start)
    return chat.transcript


class _Lines:
    """Collects lines of one speaker into a message."""

    def __init__(self) -> None:
        self._role = ""
        self._texts: list[str] = []
        self._span = Span(0, 0)

    def add(self, chat: Chat, role: str, text: str, span: Span, at: int | None) -> None:
        if role != self._role:
            self.flush(chat, at)
            self._role, self._span = role, span
        self._texts.append(text)
        self._span = Span(self._span.start, span.end)

    def flush(self, chat: Chat, at: int | None) -> None:
        if self._texts:
            chat.say(self._span, self._role, texts("\n".join(self._texts)), at=at)
        self._role, self._texts = "", []


LISTS: dict[str, Callable[[Placed], Transcript]] = {
    "gemini": gemini,
    "ai-sdk": ai_sdk,
    "langchain": langchain,
    "opencode": opencode,
}
"""Formats whose files are documents with a list of messages."""
