"""Reads out of a message what searches look at."""

from __future__ import annotations

from typing import NamedTuple, cast

import msgspec

from sidecar.messages.contract import MessageError, ToolCall
from sidecar.messages.dialects import dialect
from sidecar.messages.fence import strip


class SearchableText(NamedTuple):
    """What is searched of one message."""

    text: str
    tools: tuple[str, ...]
    """Names of the tools that are called or answered, as far as the message names them."""


def searchable(dialect_name: str, raw: bytes) -> SearchableText:
    """Visible text, calls as `name(arguments)`, and results, one below the other; text of our own left out.

    Escapes inside arguments are resolved. A message that cannot be read is searched as it is.
    """
    try:
        reading = dialect(dialect_name).read(raw)
    except (MessageError, KeyError):
        return SearchableText(raw.decode("utf-8", "replace"), ())
    lines = [strip(reading.text)]
    lines += [f"{call.name}({_arguments(call)})" for call in reading.calls]
    for result in reading.results:
        lines += [result.name, strip(result.text)]
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
    """Like JSON, with strings as they read."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, cast('list[object]', value)))}]"
    if isinstance(value, dict):
        members = cast("dict[str, object]", value).items()
        listed = ", ".join(f'"{name}": {_plain(member)}' for name, member in members)
        return "{" + listed + "}"
    return msgspec.json.encode(value).decode()
