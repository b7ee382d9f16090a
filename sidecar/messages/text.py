"""The plain text of a message: folded for comparison, for people, for search."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, cast
from unicodedata import normalize

import msgspec

from sidecar.messages.contract import Dialect, MessageError, Reading, ToolCall


def fold(text: str) -> str:
    """`text` in NFC with every run of white space as one blank, and none at the ends."""
    if not text.isascii():
        text = normalize("NFC", text)
    if text.isprintable() and "  " not in text:
        return text.strip()
    return " ".join(text.split())


@lru_cache(8192)  # every answer compares the ids of all its messages
def same_id(call_id: str) -> str:
    """The letters and digits of a tool-call id, all that some hosts keep; the whole id if it has none."""
    if call_id.isalnum():
        return call_id
    return "".join(filter(str.isalnum, call_id)) or call_id


def plain_text(reading: Reading) -> str:
    """The message as lines: visible text, calls as `name(arguments)`, results as text.

    Synthetic parts and reasoning are left out; media appear as, for example, `[image]`.
    """
    parts = [reading.said.strip()]
    parts += [f"{call.name}({call.arguments})" for call in reading.calls]
    parts += [text.strip() for text in reading.result_texts]
    parts += [f"[{medium.kind}]" for medium in reading.media]
    return "\n".join(part for part in parts if part)


class SearchableText(NamedTuple):
    """The searchable content of one message."""

    text: str
    tools: tuple[str, ...]
    """Names of the tools called or answered, if the message has them."""


def searchable(dialect: Dialect, raw: bytes) -> SearchableText:
    """Visible text, calls as `name(arguments)` and results, on separate lines, without our own text.

    Escapes inside arguments are resolved. An unreadable message is searched as raw text.
    """
    try:
        reading = dialect.read(raw)
    except MessageError:
        return SearchableText(raw.decode("utf-8", "replace"), ())
    lines = [reading.said]
    lines += [f"{call.name}({_arguments(call)})" for call in reading.calls]
    for result, text in zip(reading.results, reading.result_texts, strict=True):
        lines += [result.name, text]
    tools = dict.fromkeys([call.name for call in reading.calls] + [result.name for result in reading.results])
    return SearchableText("\n".join(line for line in lines if line), tuple(tool for tool in tools if tool))


def _arguments(call: ToolCall) -> str:
    text = call.arguments
    if "\\" not in text:
        return text
    try:
        return _plain(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return text


def _plain(value: object) -> str:
    """The value like JSON, but with unescaped strings."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, cast('list[object]', value)))}]"
    if isinstance(value, dict):
        members = cast("dict[str, object]", value).items()
        listed = ", ".join(f'"{name}": {_plain(member)}' for name, member in members)
        return "{" + listed + "}"
    return msgspec.json.encode(value).decode()
