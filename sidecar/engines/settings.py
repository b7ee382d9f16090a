"""Settings of the built-in engines, as configured in `plugins.entries.<id>.config`."""

from pydantic import BaseModel, ConfigDict, Field

from sidecar.engines import defaults
from sidecar.engines.defaults import Tuning


class EngineSettings(BaseModel):
    """Base class; unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class DefaultSettings(EngineSettings):
    """Settings of `default`."""

    summaryTokens: int = Field(default=defaults.SUMMARY_TOKENS, ge=64, le=32_000)
    """Maximum tokens of the summary; also at most an eighth of the budget, or a quarter with recall off."""
    compactTo: float = Field(default=defaults.COMPACT_TO, gt=0.05, lt=1)
    """Share of the budget filled after a compaction to `threshold`."""


class SlidingWindowSettings(EngineSettings):
    """Settings of `sliding-window`."""

    maxTurns: int | None = Field(default=None, ge=1, le=100_000)
    """Maximum turns sent, including the open one; if unset, only tokens limit them."""
    maxTokens: int | None = Field(default=None, ge=100)
    """Maximum tokens sent if the budget allows more; if unset, only the budget limits them."""
    lowWater: float = Field(default=defaults.LOW_WATER, ge=0.1, le=0.9)
    """Share of the turns or tokens left after an eviction, and of the budget after a compaction."""


class RecallSettings(EngineSettings):
    """Settings of `recall`, which is `full` without pruning."""

    compactTo: float = Field(default=defaults.COMPACT_TO, gt=0.05, lt=1)
    """Share of the budget filled after a compaction to `threshold`."""


class TerseSettings(EngineSettings):
    """Settings of `terse`."""

    recentTurns: int = Field(default=3, ge=1, le=10)
    """Turns sent in full."""
    recentTurnsSlack: int = Field(default=0, ge=0, le=50)
    """Additional turns that may be sent in full, so that turns move into the log in blocks."""
    logUntagged: bool = False
    """Log turns without a tag too, by their first sentence, tools and files."""


class LosslessSettings(EngineSettings):
    """Settings of `lossless`."""

    leafSourceTokens: int = Field(default=defaults.LEAF_SOURCE_TOKENS, ge=200, le=100_000)
    """Approximate tokens of messages covered by one summary of messages."""
    leafTokens: int = Field(default=defaults.LEAF_TOKENS, ge=64, le=16_000)
    """Maximum tokens of a summary of messages."""
    condensedTokens: int = Field(default=defaults.CONDENSED_TOKENS, ge=64, le=16_000)
    """Maximum tokens of a summary of summaries."""
    fanIn: int = Field(default=defaults.FAN_IN, ge=2, le=32)
    """Number of summaries condensed into one."""
    compactAt: float = Field(default=defaults.COMPACT_AT, gt=0.1, le=1)
    """Share of the budget beyond which the session is compacted in the background after a turn."""
    compactTo: float = Field(default=defaults.COMPACT_TO, gt=0.05, lt=1)
    """Share of the budget filled after a compaction to `threshold`."""
    blockAt: float = Field(default=defaults.BLOCK_AT, gt=0.1, le=4)
    """Share of the budget beyond which the end of a turn waits for a compaction, done without a model."""
    summaryShare: float = Field(default=defaults.SUMMARY_SHARE, ge=0.05, le=0.9)
    """Share of the answer reserved for summaries."""
    payloadTokens: int = Field(default=defaults.PAYLOAD_TOKENS, ge=0)
    """Tool results larger than this, in tokens, are replaced by references with both ends and the lines with
    ids, paths and errors; 0 sends all results whole."""
    grantTokens: int = Field(default=defaults.GRANT_TOKENS, ge=0)
    """Tokens of its parent's history that an isolated subagent may read by the tools, in total; 0 means
    none."""
    modelCalls: int = Field(default=defaults.MODEL_CALLS, ge=0)
    """Maximum summaries by a model per session within `modelWindowMs`."""
    modelWindowMs: int = Field(default=defaults.MODEL_WINDOW_MS, ge=1)
    """Length of that period, in milliseconds."""
    modelPauseMs: int = Field(default=defaults.MODEL_PAUSE_MS, ge=0)
    """Pause after three consecutive failures of the model, in milliseconds."""
    instructions: str = ""
    """Instructions for every summary, such as what to focus on."""

    def tuning(self) -> Tuning:
        """The settings in the form that the engine uses."""
        return Tuning(
            leaf_source_tokens=self.leafSourceTokens,
            leaf_tokens=self.leafTokens,
            condensed_tokens=self.condensedTokens,
            fan_in=self.fanIn,
            compact_at=max(self.compactAt, self.compactTo),
            compact_to=self.compactTo,
            block_at=max(self.blockAt, self.compactAt),
            summary_share=self.summaryShare,
            payload_tokens=self.payloadTokens,
            grant_tokens=self.grantTokens,
            model_calls=self.modelCalls,
            model_window_ms=self.modelWindowMs,
            model_pause_ms=self.modelPauseMs,
            instructions=self.instructions,
        )
