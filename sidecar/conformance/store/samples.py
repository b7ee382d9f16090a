"""Sample sessions, messages and summaries."""

from typing import Any

from sidecar.store.records import SessionRecord
from sidecar.store.search import Searchable
from sidecar.store.stored import Facts, NewMessage, SessionRef, SummaryNode

REF = SessionRef("host", "main")
CHILD = SessionRef("host", "child")
OTHER = SessionRef("host", "other")
GRANDCHILD = SessionRef("host", "grandchild")

FACTS = Facts(12, -(1 << 63), (1 << 63) - 1, 0)

TOOL_MARK = "\u2063"
"""Separates the text of a sample body from the tool names after it."""


def user(text: str, **members: Any) -> NewMessage:
    """A user message, which opens a turn."""
    return NewMessage(body=text.encode(), role="user", opens_turn=True, **members)


def reply(text: str, role: str = "assistant", **members: Any) -> NewMessage:
    """A message that opens no turn."""
    return NewMessage(body=text.encode(), role=role, opens_turn=False, **members)


def summary(node_id: str, first: int, last: int, depth: int = 0, text: str = "t") -> SummaryNode:
    """A summary of the positions from `first` to `last`."""
    return SummaryNode(
        node_id=node_id,
        first_position=first,
        last_position=last,
        text=text,
        tokens=5,
        quality="model",
        created_ms=7,
        depth=depth,
        sources=("a", "b") if depth else (),
    )


def extract(_session: SessionRecord, body: bytes) -> Searchable:
    """The text of a sample body, and its tool names."""
    text, *tools = body.decode("utf-8", "replace").split(TOOL_MARK)
    return Searchable(text, tuple(tools))
