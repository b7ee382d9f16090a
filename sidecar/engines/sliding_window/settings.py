"""Settings of the `sliding-window` engine."""

from pydantic import BaseModel, ConfigDict, Field

from sidecar.engines.sliding_window.engine import LOW_WATER


class SlidingWindowSettings(BaseModel):
    """`plugins.entries.sliding-window.config`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    maxTurns: int | None = Field(default=None, ge=1, le=100_000)
    """Most turns that are sent, the open one included; unset sends as many as the tokens allow."""
    maxTokens: int | None = Field(default=None, ge=100)
    """Most tokens that are sent, where the budget allows more; unset leaves it to the budget."""
    lowWater: float = Field(default=LOW_WATER, ge=0.1, le=0.9)
    """Share of the turns or tokens that an eviction leaves, and of the budget that a compaction leaves."""
