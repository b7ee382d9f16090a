"""Defaults of the built-in engines' settings, available without importing the settings models."""

from __future__ import annotations

from msgspec import Struct

COMPACT_TO = 0.5
"""Share of the budget filled after a compaction to `threshold`, for all engines."""
SUMMARY_TOKENS = 1500
LOW_WATER = 0.5

LEAF_SOURCE_TOKENS = 6000
LEAF_TOKENS = 700
CONDENSED_TOKENS = 900
FAN_IN = 6
COMPACT_AT = 0.8
BLOCK_AT = 1.0
SUMMARY_SHARE = 0.3
PAYLOAD_TOKENS = 10_000
GRANT_TOKENS = 0
MODEL_CALLS = 24
MODEL_WINDOW_MS = 600_000
MODEL_PAUSE_MS = 300_000


class Tuning(Struct, frozen=True, kw_only=True):
    """The settings in force; `LosslessSettings` explains each."""

    leaf_source_tokens: int = LEAF_SOURCE_TOKENS
    leaf_tokens: int = LEAF_TOKENS
    condensed_tokens: int = CONDENSED_TOKENS
    fan_in: int = FAN_IN
    compact_at: float = COMPACT_AT
    compact_to: float = COMPACT_TO
    block_at: float = BLOCK_AT
    summary_share: float = SUMMARY_SHARE
    payload_tokens: int = PAYLOAD_TOKENS
    grant_tokens: int = GRANT_TOKENS
    model_calls: int = MODEL_CALLS
    model_window_ms: int = MODEL_WINDOW_MS
    model_pause_ms: int = MODEL_PAUSE_MS
    instructions: str = ""
