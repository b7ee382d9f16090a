"""Settings of the `recall` engine."""

from pydantic import BaseModel, ConfigDict, Field

from sidecar.engines.recall.defaults import COMPACT_TO, NOTES_TOKENS, RECALL_TOKENS


class RecallSettings(BaseModel):
    """`plugins.entries.recall.config`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    recallTokens: int = Field(default=RECALL_TOKENS, ge=0, le=64_000)
    """Upper bound for what one prompt recalls, in tokens; 0 recalls nothing."""
    notesTokens: int = Field(default=NOTES_TOKENS, ge=0, le=32_000)
    """Upper bound for instructions and values that are kept of older turns, in tokens."""
    compactTo: float = Field(default=COMPACT_TO, gt=0.05, lt=1)
    """Share of the budget that a compaction to `threshold` leaves."""
