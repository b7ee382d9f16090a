"""Settings of the `default` engine."""

from pydantic import BaseModel, ConfigDict, Field

from sidecar.engines.default.engine import COMPACT_TO, SUMMARY_TOKENS


class DefaultSettings(BaseModel):
    """`plugins.entries.default.config`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    summaryTokens: int = Field(default=SUMMARY_TOKENS, ge=64, le=32_000)
    """Upper bound for the summary, in tokens; never more than a quarter of the budget is used."""
    compactTo: float = Field(default=COMPACT_TO, gt=0.05, lt=1)
    """Share of the budget that a compaction to `threshold` leaves."""
