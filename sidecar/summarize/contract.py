"""The interface of summarisers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from sidecar.tokens.contract import TokenCounter

Quality = Literal["model", "aggressive", "deterministic"]


class SourceMessage(Struct, frozen=True):
    """One message that a summary must cover."""

    message_id: str
    turn_id: str
    role: str
    text: str
    """Visible text; tool calls as `name(arguments)` lines, results as text."""
    timestamp_ms: int | None = None
    sender: str = ""
    """Which of several users wrote it, if known."""

    @property
    def speaker(self) -> str:
        """The role, followed by the sender's name if there is one."""
        return f"{self.role} ({self.sender})" if self.sender else self.role


class SummaryRequest(Struct, frozen=True, kw_only=True):
    """What to summarise, and the maximum length."""

    sources: Sequence[SourceMessage]
    target_tokens: int
    """Maximum tokens of the result."""
    earlier: str = ""
    """The summary of what precedes these sources; its relevant parts are carried over."""
    depth: int = 0
    """0 for a summary of messages; for a summary of summaries (`earlier`), one more than theirs."""
    instructions: str = ""
    """The user's or host's instructions for this summary; untrusted data from the wire."""


def tokens_to_shorten(request: SummaryRequest, counter: TokenCounter) -> int:
    """Tokens of everything that the summary must cover."""
    return counter.count(request.earlier) + sum(counter.count(source.text) for source in request.sources)


class Summary(Struct, frozen=True):
    """A summary, and who wrote it."""

    text: str
    quality: Quality
    model: str = ""


class Summariser(Protocol):
    """Shortens messages. Never fails; an implementation without a model never waits."""

    async def summarise(self, request: SummaryRequest) -> Summary:
        """A summary of at most `target_tokens` tokens, never empty if there is a source."""
        ...
