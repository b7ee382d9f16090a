"""What model providers accept as a history: the published types of their APIs, and rules between messages.

Every member that is not named here is a fault, as it is for the providers.
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

Body = dict[str, Any]
Status = Literal["in_progress", "completed", "incomplete"]


# --- Messages API


class _Block(Struct, tag_field="type", forbid_unknown_fields=True, kw_only=True):
    pass


class _Ephemeral(Struct, tag_field="type", tag="ephemeral", forbid_unknown_fields=True):
    ttl: Literal["5m", "1h"] = "5m"


class _Markable(_Block, kw_only=True):
    cache_control: _Ephemeral | None = None


class _Text(_Markable, tag="text"):
    text: str
    citations: list[dict[str, Any]] | None = None


class _Base64(_Block, tag="base64"):
    data: str
    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"]


class _Url(_Block, tag="url"):
    url: str


class _PlainText(_Block, tag="text"):
    data: str
    media_type: Literal["text/plain"]


class _File(_Block, tag="file"):
    file_id: str


class _Image(_Markable, tag="image"):
    source: _Base64 | _Url | _File


class _Document(_Markable, tag="document"):
    source: _Base64 | _Url | _File | _PlainText
    citations: dict[str, bool] | None = None
    context: str | None = None
    title: str | None = None


class _SearchResult(_Markable, tag="search_result"):
    content: list[_Text]
    source: str
    title: str
    citations: dict[str, bool] | None = None


class _Thinking(_Block, tag="thinking"):
    thinking: str
    signature: str


class _Redacted(_Block, tag="redacted_thinking"):
    data: str


class _ToolUse(_Markable, tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]
    caller: dict[str, Any] | None = None


class _ToolResult(_Markable, tag="tool_result"):
    tool_use_id: str
    content: str | list[_Text | _Image | _Document | _SearchResult] = ""
    is_error: bool = False


class _ServerUse(_Markable, tag="server_tool_use"):
    id: str
    name: Literal["web_search", "web_fetch", "code_execution", "bash_code_execution"]
    input: dict[str, Any]
    caller: dict[str, Any] | None = None


class _WebSearchResult(_Markable, tag="web_search_tool_result"):
    tool_use_id: str
    content: list[dict[str, Any]] | dict[str, Any]


_User = _Text | _Image | _Document | _SearchResult | _ToolResult
_Assistant = _Text | _Thinking | _Redacted | _ToolUse | _ServerUse | _WebSearchResult


class _UserMessage(Struct, tag_field="role", tag="user", forbid_unknown_fields=True):
    content: str | list[_User]


class _AssistantMessage(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True):
    content: str | list[_Assistant]


class _SystemMessage(Struct, tag_field="role", tag="system", forbid_unknown_fields=True):
    content: str | list[_Text]


class _Messages(Struct):
    messages: list[_UserMessage | _AssistantMessage | _SystemMessage]
    system: str | list[_Text] = ""
    tools: list[dict[str, Any]] = []


MARKERS = 4
"""Cache markers that the Messages API takes in one request."""


def message_faults(body: Body) -> Iterator[str]:
    """What the Messages API would refuse."""
    try:
        request = msgspec.convert(body, _Messages)
    except msgspec.ValidationError as problem:
        yield f"the request does not have the published form: {problem}"
        return
    markers = msgspec.json.encode(body).count(b'"cache_control":{')
    if markers > MARKERS:
        yield f"{markers} cache markers"
    due: list[str] = []
    used: set[str] = set()
    before = ""
    for place, message in enumerate(request.messages):
        role, blocks = _role(message), _blocks(message)
        if not blocks:
            yield f"message {place} is empty"
        if any(isinstance(block, _Text) and not block.text.strip() for block in blocks):
            yield f"message {place} has an empty text"
        if role == "system":
            if before not in ("user", "assistant"):
                yield f"system message {place} stands behind {before or 'nothing'}"
            before = role
            continue
        if place == 0 and role != "user":
            yield f"the first message is of {role}"
        results = [block.tool_use_id for block in blocks if isinstance(block, _ToolResult)]
        if sorted(results) != sorted(due):
            yield f"message {place} has results {results} for calls {due}"
        if results and not all(isinstance(block, _ToolResult) for block in blocks[: len(results)]):
            yield f"message {place} says something before its results"
        due = [block.id for block in blocks if isinstance(block, _ToolUse)]
        if again := used.intersection(due):
            yield f"message {place} uses the call ids {again} again"
        used.update(due)
        yield from (f"message {place} {fault}" for fault in _assistant_faults(blocks))
        before = role
    if due:
        yield f"the calls {due} at the end have no results"


def _role(message: Struct) -> str:
    return str(message.__struct_config__.tag)


def _blocks(message: Any) -> list[Any]:
    content = message.content
    return [_Text(text=content)] if isinstance(content, str) else content


def _assistant_faults(blocks: list[Any]) -> Iterator[str]:
    served = [block.id for block in blocks if isinstance(block, _ServerUse)]
    found = [block.tool_use_id for block in blocks if isinstance(block, _WebSearchResult)]
    if served != found:
        yield f"has server results {found} for server calls {served}"
    for block in blocks:
        if isinstance(block, _Thinking) and not block.signature:
            yield "has thinking without its signature"


# --- Responses API


class _Item(Struct, tag_field="type", forbid_unknown_fields=True, kw_only=True):
    id: str | None = None


class _InputText(_Block, tag="input_text"):
    text: str


class _InputImage(_Block, tag="input_image"):
    detail: Literal["low", "high", "auto", "original"] = "auto"
    image_url: str | None = None
    file_id: str | None = None


class _InputFile(_Block, tag="input_file"):
    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: str | None = None


class _OutputText(_Block, tag="output_text"):
    text: str
    annotations: list[dict[str, Any]] = []
    logprobs: list[dict[str, Any]] | None = None


class _Refusal(_Block, tag="refusal"):
    refusal: str


class _SummaryText(_Block, tag="summary_text"):
    text: str


_Input = _InputText | _InputImage | _InputFile


class _Message(_Item, tag="message"):
    role: Literal["user", "system", "developer", "assistant"]
    content: str | list[_InputText | _InputImage | _InputFile | _OutputText | _Refusal]
    status: Status | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class _Call(_Item, tag="function_call"):
    call_id: str
    name: str
    arguments: str
    namespace: str | None = None
    status: Status | None = None


class _CallOutput(_Item, tag="function_call_output"):
    call_id: str
    output: str | list[_Input]
    status: Status | None = None


class _CustomCall(_Item, tag="custom_tool_call"):
    call_id: str
    name: str
    input: str
    status: Status | None = None


class _CustomOutput(_Item, tag="custom_tool_call_output"):
    call_id: str
    output: str | list[_Input]


class _Reasoning(_Item, tag="reasoning"):
    summary: list[_SummaryText]
    content: list[dict[str, Any]] | None = None
    encrypted_content: str | None = None
    status: Status | None = None


class _WebSearch(_Item, tag="web_search_call"):
    status: Literal["in_progress", "searching", "completed", "failed"]
    action: dict[str, Any] | None = None


class _Compaction(_Item, tag="compaction"):
    encrypted_content: str


_Items = _Message | _Call | _CallOutput | _CustomCall | _CustomOutput | _Reasoning | _WebSearch | _Compaction


class _Responses(Struct):
    input: str | list[_Items]


def response_faults(body: Body) -> Iterator[str]:
    """What the Responses API would refuse."""
    given = body["input"]
    if isinstance(given, list):
        typed = [item if "type" in item else {"type": "message", **item} for item in given]
        body = {**body, "input": typed}
    try:
        request = msgspec.convert(body, _Responses)
    except msgspec.ValidationError as problem:
        yield f"the request does not have the published form: {problem}"
        return
    items = request.input if isinstance(request.input, list) else []
    if not items and isinstance(given, list):
        yield "the input is empty"
    for calls, outputs in ((_Call, _CallOutput), (_CustomCall, _CustomOutput)):
        due: list[str] = []
        for place, item in enumerate(items):
            if isinstance(item, calls):
                due.append(item.call_id)
            elif isinstance(item, outputs):
                if item.call_id not in due:
                    yield f"item {place} answers {item.call_id}, which nothing called"
                else:
                    due.remove(item.call_id)
        if due:
            yield f"the calls {due} have no output"
    known: set[str] = set()
    for place, item in enumerate(items):
        if item.id and item.id in known:
            yield f"item {place} has the id {item.id} again"
        known.add(item.id or "")
        behind = items[place + 1] if place + 1 < len(items) else None
        if isinstance(item, _Reasoning):
            if not isinstance(behind, _Call | _CustomCall | _WebSearch | _Reasoning | _Message):
                yield f"reasoning {place} stands without what it belongs to"
            if isinstance(behind, _Message) and behind.role != "assistant":
                yield f"reasoning {place} stands in front of a message of {behind.role}"
        if isinstance(item, _Compaction) and "context-sidecar." in item.encrypted_content:
            yield f"item {place} is one that only the gateway understands"
        if isinstance(item, _Message) and isinstance(item.content, list):
            own = _OutputText | _Refusal if item.role == "assistant" else _Input
            if not item.content or not all(isinstance(part, own) for part in item.content):
                yield f"message {place} of {item.role} has parts of another role, or none"


# --- Chat Completions


class _ChatPart(Struct, tag_field="type", forbid_unknown_fields=True, kw_only=True):
    pass


class _ChatText(_ChatPart, tag="text"):
    text: str


class _ChatRefusal(_ChatPart, tag="refusal"):
    refusal: str


class _ChatImage(_ChatPart, tag="image_url"):
    image_url: dict[str, str]


class _ChatAudio(_ChatPart, tag="input_audio"):
    input_audio: dict[str, str]


class _ChatFile(_ChatPart, tag="file"):
    file: dict[str, str]


class _Function(Struct, forbid_unknown_fields=True):
    name: str
    arguments: str


class _ChatCall(Struct, tag_field="type", tag="function", forbid_unknown_fields=True, kw_only=True):
    id: str
    function: _Function


class _ChatMessage(Struct, tag_field="role", forbid_unknown_fields=True, kw_only=True):
    name: str | None = None


class _ChatSystem(_ChatMessage, tag="system"):
    content: str | list[_ChatText]


class _ChatDeveloper(_ChatMessage, tag="developer"):
    content: str | list[_ChatText]


class _ChatUser(_ChatMessage, tag="user"):
    content: str | list[_ChatText | _ChatImage | _ChatAudio | _ChatFile]


class _ChatAssistant(_ChatMessage, tag="assistant"):
    content: str | list[_ChatText | _ChatRefusal] | None = None
    refusal: str | None = None
    tool_calls: list[_ChatCall] | None = None


class _ChatTool(_ChatMessage, tag="tool"):
    content: str | list[_ChatText]
    tool_call_id: str


class _Chat(Struct):
    messages: list[_ChatSystem | _ChatDeveloper | _ChatUser | _ChatAssistant | _ChatTool]


def chat_faults(body: Body) -> Iterator[str]:
    """What Chat Completions would refuse."""
    try:
        request = msgspec.convert(body, _Chat)
    except msgspec.ValidationError as problem:
        yield f"the request does not have the published form: {problem}"
        return
    if not request.messages:
        yield "there are no messages"
    due: list[str] = []
    for place, message in enumerate(request.messages):
        if isinstance(message, _ChatTool):
            if message.tool_call_id not in due:
                yield f"message {place} answers {message.tool_call_id}, which nothing called"
            else:
                due.remove(message.tool_call_id)
            continue
        if due:
            yield f"message {place} stands before the results of {due}"
        due = []
        if isinstance(message, _ChatAssistant):
            due = [call.id for call in message.tool_calls or ()]
            if not due and message.content is None and message.refusal is None:
                yield f"message {place} says nothing"
    if due:
        yield f"the calls {due} at the end have no results"
