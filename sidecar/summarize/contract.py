"""What a summariser is given, and what it must give back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from sidecar.tokens.contract import TokenCounter

Quality = Literal["model", "aggressive", "deterministic"]


class SourceMessage(Struct, frozen=True):
    """One message, or one earlier summary, that a summary has to cover."""

    message_id: str
    turn_id: str
    role: str
    text: str
    """Visible text; tool calls as `name(arguments)` lines, results as text."""
    timestamp_ms: int | None = None
    sender: str = ""
    """Who of several users wrote it, where the message says so."""

    @property
    def speaker(self) -> str:
        """The role, with the name of the sender where there is one."""
        return f"{self.role} ({self.sender})" if self.sender else self.role


class SummaryRequest(Struct, frozen=True, kw_only=True):
    """What to summarise, and how long the result may be."""

    sources: Sequence[SourceMessage]
    target_tokens: int
    """Upper bound for the result."""
    earlier: str = ""
    """The summary that stood before these sources; what still matters of it is carried over."""
    depth: int = 0
    """0 for a summary of messages, one more than its sources for a summary of summaries (`earlier`)."""
    instructions: str = ""
    """The user's or host's wishes for this summary; data from the wire, no orders to the sidecar."""


def tokens_to_shorten(request: SummaryRequest, counter: TokenCounter) -> int:
    """Tokens of everything that the summary is to cover."""
    return counter.count(request.earlier) + sum(counter.count(source.text) for source in request.sources)


class Summary(Struct, frozen=True):
    """A summary, and who wrote it."""

    text: str
    quality: Quality
    model: str = ""


class Summariser(Protocol):
    """Turns messages into a shorter text. Always returns; an implementation without a model never waits."""

    async def summarise(self, request: SummaryRequest) -> Summary:
        """A summary of at most `target_tokens` tokens, never empty where there was a source."""
        ...
