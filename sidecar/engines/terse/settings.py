"""Settings of the `terse` engine."""

from pydantic import BaseModel, ConfigDict, Field


class TerseSettings(BaseModel):
    """`plugins.entries.terse.config`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    recentTurns: int = Field(default=3, ge=1, le=10)
    """Turns that are sent in full."""
    recentTurnsSlack: int = Field(default=0, ge=0, le=50)
    """How many more may be sent in full, so that turns move into the log in blocks."""
    logUntagged: bool = False
    """Give a turn without a tag a line as well, made of its first sentence, tools and files."""
