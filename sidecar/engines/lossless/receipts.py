"""What a compaction did, for the host and for later."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, json

from sidecar.engine.session import Session

RECEIPTS_STATE = "receipts"
MOST = 20
"""Receipts that are kept of a session."""


class ReceiptNode(Struct, frozen=True, rename="camel"):
    """A summary that is sent from now on."""

    node_id: str
    depth: int
    first_position: int
    last_position: int
    tokens: int
    quality: str


class Receipt(Struct, frozen=True, kw_only=True, rename="camel"):
    """One compaction."""

    at_ms: int
    reason: str
    """`threshold`, `block`, `asked`, `forced`."""
    summarised_messages: int
    """Messages that a summary stands for now and did not before."""
    covered_messages: int
    """All messages that summaries stand for."""
    kept_messages: int
    """Messages that stay in full."""
    first_kept_message_id: str
    tokens_before: int
    tokens_after: int
    model_summaries: int
    """Summaries that a model wrote for it."""
    fallback_summaries: int
    """Those that a model should have written, and will be asked for again."""
    pins_kept: list[str]
    """Ids of the pins of the session: the guard keeps them in every answer."""
    nodes: list[ReceiptNode]


async def keep_receipt(session: Session, receipt: Receipt) -> bytes:
    """Keep it beside the newest others; returns it as JSON."""
    kept = await session.state(RECEIPTS_STATE)
    older: list[Any] = json.decode(kept) if kept else []
    await session.save_state(RECEIPTS_STATE, json.encode([*older[-(MOST - 1) :], receipt]))
    return json.encode(receipt)
