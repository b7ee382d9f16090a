"""Types of the `runtime/*` methods, which the host answers."""

from typing import Annotated

from sidecar.protocol.base import (
    Count,
    MessageId,
    PositiveInt,
    RawMessage,
    SessionId,
    SessionKey,
    Wire,
    known_values,
)
from sidecar.protocol.context import CompactContextParams, CompactContextResult

PromptRole = Annotated[str, known_values("PromptRole", "Who speaks in a completion.", "user", "assistant")]
"""Who speaks in a completion."""

CompletionPurpose = Annotated[
    str,
    known_values(
        "CompletionPurpose",
        "What a completion is for; a host may choose another model for each.",
        "summary",
        "condense",
        "synthesis",
        "query",
    ),
]
"""What a completion is for."""


class PromptMessage(Wire, frozen=True, kw_only=True):
    """A message of a completion, in no dialect."""

    role: PromptRole
    """Who speaks."""
    content: str
    """What is said."""


class CompleteRuntimeParams(Wire, frozen=True, kw_only=True):
    """Params of `runtime/complete`."""

    purpose: CompletionPurpose
    """What the text is for; a host may choose another model for each."""
    messages: list[PromptMessage]
    """The conversation to complete."""
    system_prompt: str | None = None
    """Instructions that go before it."""
    max_tokens: PositiveInt
    """Largest answer, in tokens."""
    model: str | None = None
    """Model that the configuration asks for; the host decides."""
    session_id: SessionId | None = None
    """The session on whose behalf this is asked."""


class CompletionUsage(Wire, frozen=True, kw_only=True):
    """Tokens that a completion took."""

    input_tokens: Count
    """Tokens that went in."""
    output_tokens: Count
    """Tokens that came out."""


class CompleteRuntimeResult(Wire, frozen=True, kw_only=True):
    """Result of `runtime/complete`."""

    text: str
    """What the model wrote."""
    model: str | None = None
    """The model that wrote it."""
    usage: CompletionUsage | None = None
    """What it took."""


class CompactRuntimeParams(CompactContextParams, frozen=True, kw_only=True):
    """Params of `runtime/compact`: those of `context/compact`, handed on."""


class CompactRuntimeResult(CompactContextResult, frozen=True, kw_only=True):
    """Result of `runtime/compact`: that of `context/compact`, handed back."""


class TranscriptReplacement(Wire, frozen=True, kw_only=True):
    """One message of the host's transcript to replace."""

    message_id: MessageId
    """Id of the message."""
    message: RawMessage
    """What to put in its place."""


class RewriteTranscriptRuntimeParams(Wire, frozen=True, kw_only=True):
    """Params of `runtime/rewriteTranscript`."""

    session_id: SessionId
    """The session whose transcript is meant."""
    session_key: SessionKey | None = None
    """Alias of the session."""
    replacements: list[TranscriptReplacement]
    """What to replace; a message that is not named stays."""


class RewriteTranscriptRuntimeResult(Wire, frozen=True, kw_only=True):
    """Result of `runtime/rewriteTranscript`."""

    changed: bool
    """True where the transcript is another one now."""
    bytes_freed: Count
    """Number of bytes by which it shrank."""
    rewritten_entries: Count
    """How many messages were replaced."""
    reason: str | None = None
    """Why nothing, or not everything, was replaced."""
