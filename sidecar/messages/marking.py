"""Tells whether a whole message is synthetic."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.messages.contract import Mark, Media, ToolCall, ToolResult
from sidecar.messages.fence import whole_mark


def message_mark(
    text: str, calls: Sequence[ToolCall], results: Sequence[ToolResult], media: Sequence[Media]
) -> Mark | None:
    """The mark of a message in which nothing but fenced text is said, otherwise `None`."""
    if calls or media:
        return None
    said = whole_mark(text) if text.strip() else None
    if text.strip() and said is None:
        return None
    marks = [whole_mark(result.text) for result in results]
    if any(mark is None for mark in marks):
        return None
    return marks[0] if marks else said
