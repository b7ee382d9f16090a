"""Settings of the `lossless` engine."""

from pydantic import BaseModel, ConfigDict, Field

from sidecar.engines.lossless import defaults
from sidecar.engines.lossless.defaults import Tuning


class LosslessSettings(BaseModel):
    """`plugins.entries.lossless.config`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

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
    hintTokens: int = Field(default=defaults.HINT_TOKENS, ge=0, le=16_000)
    """Upper bound for what one prompt has pointed to behind the summaries, in tokens; 0 for nothing."""
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
            hint_tokens=self.hintTokens,
            model_calls=self.modelCalls,
            model_window_ms=self.modelWindowMs,
            model_pause_ms=self.modelPauseMs,
            instructions=self.instructions,
        )
