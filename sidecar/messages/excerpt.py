"""Renders a message as plain text, for people and for summaries."""

from __future__ import annotations

from sidecar.messages.contract import Reading
from sidecar.messages.fence import strip


def plain_text(reading: Reading) -> str:
    """What the message says: visible text, calls as `name(arguments)`, results as text, one below the other.

    Synthetic parts and reasoning are left out; media stand as `[image]`.
    """
    parts = [strip(reading.text).strip()]
    parts += [f"{call.name}({call.arguments})" for call in reading.calls]
    parts += [strip(result.text).strip() for result in reading.results]
    parts += [f"[{medium.kind}]" for medium in reading.media]
    return "\n".join(part for part in parts if part)
