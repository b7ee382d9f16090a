"""Imports transcripts that are one JSON document: request bodies, message lists, trajectories."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import cast

import msgspec
from msgspec import Raw, Struct

from sidecar.messages.contract import MessageError
from sidecar.messages.dialects import dialect
from sidecar.messages.dialects.decoding import MessageDecoder, json_text
from sidecar.messages.dialects.splicing import items
from sidecar.messages.importers.rows import (
    BAD_LINE,
    BYTE_ORDER_MARK,
    TORN_LINE,
    encoded,
    lines,
    one_line,
    placed_lines,
)
from sidecar.messages.importers.text import Text
from sidecar.messages.importers.transcript import Imported, Source, Span, Transcript, TranscriptError


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


class _Document:
    """The text of a source without a byte order mark and white space around it."""

    def __init__(self, source: Source) -> None:
        data = source.read_bytes()
        self.text = data.removeprefix(BYTE_ORDER_MARK).strip()
        self._offset = data.find(self.text)

    def array(self, raw: Raw | bytes, name: str) -> list[tuple[Span, bytes]]:
        """The items of an array that stands in the document, each with its place in the source.

        Raises:
            TranscriptError: there is no such array.
        """
        array, text = bytes(raw), self.text
        found = items(array)
        if found is None or array not in text:
            # It has lone surrogate escapes, or had them: masking them changes no offset.
            from sidecar.surrogates import mask

            array, text = mask(array), mask(text)
            found = items(array)
        if found is None:
            raise TranscriptError(f"{name} is no JSON array of messages")
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

    def told(message: bytes) -> bytes:
        message.decode()
        read(message)
        return one_line(message.strip())

    for index, (span, message) in enumerate(found):
        try:
            raw = told(message) if kept is None else kept.once(key, message, partial(told, message))
        except (MessageError, UnicodeDecodeError):
            is_torn = array is None and index == len(found) - 1 and not message.endswith(b"\n")
            transcript.skip(TORN_LINE if is_torn else BAD_LINE)
        else:
            transcript.items.append(Imported(raw, None, None, span))
    return transcript


def _array_of_messages(source: Source, transcript: Transcript) -> list[tuple[Span, bytes]] | None:
    """The messages of a document, each with its place; `None` where the source has a message a line."""
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
    """Whether the first line is a whole object, and another one follows: then the source is no document."""
    first, second = (*islice(lines(source), 2), b"", b"")[:2]
    return bool(second) and first.lstrip()[:1] == b"{" and is_document(first)


def _body(data: bytes) -> _Body:
    try:
        return MessageDecoder(_Body)(data)
    except MessageError:
        raise TranscriptError("the file is no JSON object") from None


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
