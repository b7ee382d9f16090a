"""Renders stored messages as text for the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import MsgspecError, Struct, json

from sidecar.messages.contract import Reading, ToolCall
from sidecar.messages.terse_tags import one_line
from sidecar.messages.text import same_id
from sidecar.store.stored import StoredMessage

NOTHING = "(empty)"
UNNAMED = "tool"
"""The name of a tool whose call is unknown."""

_LOOKS_LIKE_OURS = re.compile(r"(?m)^(?=--- |\[[^\s\]]+ [^\s\]]+\] )")
"""The start of a line that could be mistaken for a heading or for another message."""


class Shown(Struct, frozen=True):
    """One message as text."""

    position: int
    text: str
    head: int = 0
    """Length of the prefix with role and turn, in characters."""

    def shortened(self, most: int, cut: Callable[[str, int], str]) -> Shown:
        """The message in at most `most` characters; `cut` shortens a text to a length."""
        if len(self.text) <= most:
            return self
        head = self.text[: self.head]
        return Shown(self.position, head + cut(self.text[self.head :], max(most - self.head, 1)), self.head)


def show(stored: StoredMessage, reading: Reading, tools: Mapping[str, str]) -> Shown:
    """Each tool result as `[tool t7] name: text`, then the message's text as `[role t7] text`.

    `tools` maps the ids of calls to the names of their tools.
    """
    turn = one_line(stored.turn_id)
    parts: list[tuple[str, str]] = []
    for result, answer in zip(reading.results, reading.result_texts, strict=True):
        name = one_line(result.name or tools.get(same_id(result.call_id), "")) or UNNAMED
        parts.append((f"[tool {turn}] {name}: ", _safe(answer) or NOTHING))
    said = [_safe(reading.said), *map(_call, reading.calls)]
    said += [f"[{medium.kind}]" for medium in reading.media]
    text = " ".join(piece for piece in said if piece)
    if text or not parts:
        role = reading.role if reading.role != "other" else one_line(reading.wire_role).replace(" ", "_")
        parts.append((f"[{role} {turn}] ", text or NOTHING))
    return Shown(stored.position, "\n".join(head + body for head, body in parts), len(parts[0][0]))


def tool_names(readings: Iterable[Reading]) -> dict[str, str]:
    """The names of the called tools, by call id."""
    return {same_id(call.id): call.name for reading in readings for call in reading.calls}


def in_ranges(shown: Sequence[Shown], count: int) -> str:
    """The messages in order, each contiguous range under a heading; `count` is how many are stored."""
    blocks: list[str] = []
    for _, run in groupby(enumerate(shown), key=lambda pair: pair[1].position - pair[0]):
        messages = [message for _, message in run]
        blocks.append(f"--- messages {messages[0].position}-{messages[-1].position} of {count} ---")
        blocks += [message.text for message in messages]
    return "\n".join(blocks)


def _call(call: ToolCall) -> str:
    arguments = " ".join(_readable(call.arguments).splitlines()) or "{}"
    return f"[tool: {one_line(call.name)}({arguments})]"


def _readable(arguments: str) -> str:
    """The arguments with escapes decoded, so that models can read and search them."""
    if "\\u" not in arguments:
        return arguments
    try:
        return json.encode(json.decode(arguments)).decode()
    except (MsgspecError, RecursionError):
        return arguments


def _safe(text: str) -> str:
    """The text with lines indented that could be mistaken for our own."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    first, line_break, rest = text.partition("\n")
    return first + line_break + _LOOKS_LIKE_OURS.sub(" ", rest) if rest else first
