"""Settings of the built-in engines, as `plugins.entries.<id>.config` holds them."""

from pydantic import BaseModel, ConfigDict, Field

from sidecar.engines import defaults
from sidecar.engines.defaults import Tuning


class EngineSettings(BaseModel):
    """Base of them: unknown keys are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class DefaultSettings(EngineSettings):
    """Settings of `default`."""

    summaryTokens: int = Field(default=defaults.SUMMARY_TOKENS, ge=64, le=32_000)
    """Upper bound for the summary, in tokens; at most an eighth of the budget, a quarter with recall off."""
    compactTo: float = Field(default=defaults.COMPACT_TO, gt=0.05, lt=1)
    """Share of the budget that a compaction to `threshold` leaves."""


class SlidingWindowSettings(EngineSettings):
    """Settings of `sliding-window`."""

    maxTurns: int | None = Field(default=None, ge=1, le=100_000)
    """Most turns that are sent, the open one included; unset sends as many as the tokens allow."""
    maxTokens: int | None = Field(default=None, ge=100)
    """Most tokens that are sent, where the budget allows more; unset leaves it to the budget."""
    lowWater: float = Field(default=defaults.LOW_WATER, ge=0.1, le=0.9)
    """Share of the turns or tokens that an eviction leaves, and of the budget that a compaction leaves."""


class RecallSettings(EngineSettings):
    """Settings of `recall`."""

    compactTo: float = Field(default=defaults.COMPACT_TO, gt=0.05, lt=1)
    """Share of the budget that a compaction to `threshold` leaves."""


class TerseSettings(EngineSettings):
    """Settings of `terse`."""

    recentTurns: int = Field(default=3, ge=1, le=10)
    """Turns that are sent in full."""
    recentTurnsSlack: int = Field(default=0, ge=0, le=50)
    """How many more may be sent in full, so that turns move into the log in blocks."""
    logUntagged: bool = False
    """Give a turn without a tag a line as well, made of its first sentence, tools and files."""


class LosslessSettings(EngineSettings):
    """Settings of `lossless`."""

    leafSourceTokens: int = Field(default=defaults.LEAF_SOURCE_TOKENS, ge=200, le=100_000)
    """Tokens of messages that one summary of messages stands for, about."""
    leafTokens: int = Field(default=defaults.LEAF_TOKENS, ge=64, le=16_000)
    """Upper bound for a summary of messages, in tokens."""
    condensedTokens: int = Field(default=defaults.CONDENSED_TOKENS, ge=64, le=16_000)
    """Upper bound for a summary of summaries, in tokens."""
    fanIn: int = Field(default=defaults.FAN_IN, ge=2, le=32)
    """Summaries that are condensed into one."""
    compactAt: float = Field(default=defaults.COMPACT_AT, gt=0.1, le=1)
    """Share of the budget beyond which a turn is followed by a compaction in the background."""
    compactTo: float = Field(default=defaults.COMPACT_TO, gt=0.05, lt=1)
    """Share of the budget that a compaction to `threshold` leaves."""
    blockAt: float = Field(default=defaults.BLOCK_AT, gt=0.1, le=4)
    """Share of the budget beyond which the end of a turn waits for a compaction, which asks no model then."""
    summaryShare: float = Field(default=defaults.SUMMARY_SHARE, ge=0.05, le=0.9)
    """Share of what is sent that summaries take, at least where there is more to tell."""
    payloadTokens: int = Field(default=defaults.PAYLOAD_TOKENS, ge=0)
    """Larger tool results stand as references with their ends and the lines with ids, paths and errors, in
    tokens; 0 sends all of them whole."""
    grantTokens: int = Field(default=defaults.GRANT_TOKENS, ge=0)
    """What a subagent that was spawned in isolation may read of its parent's history by the tools, until it
    ends, in tokens; 0 for nothing."""
    modelCalls: int = Field(default=defaults.MODEL_CALLS, ge=0)
    """Summaries that a model is asked for within `modelWindowMs`, for one session."""
    modelWindowMs: int = Field(default=defaults.MODEL_WINDOW_MS, ge=1)
    """The time in which these are counted, in milliseconds."""
    modelPauseMs: int = Field(default=defaults.MODEL_PAUSE_MS, ge=0)
    """How long the model is left alone after three failures in a row, in milliseconds."""
    instructions: str = ""
    """Wishes for every summary, such as what to dwell on."""

    def tuning(self) -> Tuning:
        """The same in the form that the engine works with."""
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
