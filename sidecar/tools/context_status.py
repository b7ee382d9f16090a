"""The tool `context_status`: how much room is left, what was compacted last, what is pinned."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct, json

from sidecar.store.search.excerpt import cut
from sidecar.tools.arguments import read_arguments
from sidecar.tools.contract import (
    Compacted,
    ContextControl,
    ContextStatus,
    PinShown,
    ToolFailed,
    ToolOutcome,
    ToolSession,
)

MOST_PINS, PIN = 40, 200
"""Pins that are listed, and characters of each."""

DESCRIPTION = """\
Tells how much room this conversation has left: the tokens that you were sent last and how many there \
may be, what was compacted last, and what is pinned, which stays in view whatever is compacted. Takes no \
arguments. To make room yourself, call context_compact."""

INPUT_SCHEMA: dict[str, object] = {"type": "object", "properties": {}}


class StatusArguments(Struct):
    """Arguments of the tool: none."""


class ShowStatus:
    """Shows what the model is sent of the conversation."""

    name: ClassVar[str] = "context_status"
    description: ClassVar[str] = DESCRIPTION
    input_schema: ClassVar[bytes] = json.encode(INPUT_SCHEMA)
    is_own: ClassVar[bool] = True

    async def call(self, session: ToolSession, arguments: bytes) -> ToolOutcome:
        """As `AgentTool.call`."""
        read_arguments(arguments, StatusArguments)
        status = await own_context(session).status()
        return ToolOutcome("\n".join(_lines(status)), json.encode(status))


def own_context(session: ToolSession) -> ContextControl:
    """The context of the conversation in which a tool is called.

    Raises:
        ToolFailed: the tool looks into another one.
    """
    if session.context is None:
        raise ToolFailed('This is about your own conversation only: leave "of" out.')
    return session.context


def _lines(status: ContextStatus) -> list[str]:
    lines = [f"{status.message_count} messages of this conversation are stored; all of them can be searched."]
    if status.tokens is None or status.token_budget is None:
        lines.append("Nothing has been sent to you yet.")
    else:
        left = max(status.token_budget - status.tokens, 0)
        lines.append(f"Sent last: {status.tokens} of {status.token_budget} tokens. {left} tokens are left.")
    lines.append(f"Compacted last: {_compacted(status.compacted)}")
    if not status.pins:
        return [*lines, "Nothing is pinned."]
    shown = status.pins[-MOST_PINS:]
    more = f", the newest {MOST_PINS} of {len(status.pins)}" if len(shown) < len(status.pins) else ""
    return [*lines, f"Pinned{more}:", *map(_pin, shown)]


def _compacted(done: Compacted | None) -> str:
    if done is None:
        return "never, or not on request."
    kept = f"; sent in full from message {done.first_kept_position} on" if done.first_kept_position else ""
    return (
        f"{done.timestamp}, after message {done.message_count}, "
        f"from {done.tokens_before} to {done.tokens_after} tokens{kept}."
    )


def _pin(pin: PinShown) -> str:
    said = f"message {pin.message_id}" if pin.text is None else " ".join(pin.text.split())
    note = f" ({pin.note})" if pin.note else ""
    return f"- {cut(said, 0, PIN)}{note}"
