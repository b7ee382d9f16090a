"""Shows receipts of compactions as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw, Struct, json

from sidecar.protocol.times import format_rfc3339

COLUMNS = ("when", "why", "summarised", "in full", "tokens", "by a model", "owed", "pins")


class _Receipt(Struct, rename="camel"):
    at_ms: int = 0
    reason: str = ""
    summarised_messages: int = 0
    kept_messages: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    model_summaries: int = 0
    fallback_summaries: int = 0
    pins_kept: list[str] = []


def rows_of(receipts: Sequence[Raw]) -> list[tuple[str, ...]]:
    """One row a compaction, oldest first."""
    return [_row(json.decode(receipt, type=_Receipt)) for receipt in receipts]


def _row(receipt: _Receipt) -> tuple[str, ...]:
    return (
        format_rfc3339(receipt.at_ms),
        receipt.reason,
        str(receipt.summarised_messages),
        str(receipt.kept_messages),
        f"{receipt.tokens_before} to {receipt.tokens_after}",
        str(receipt.model_summaries),
        str(receipt.fallback_summaries),
        str(len(receipt.pins_kept)),
    )
