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
    """The text."""


class CompleteRuntimeParams(Wire, frozen=True, kw_only=True):
    """Params of `runtime/complete`."""

    purpose: CompletionPurpose
    """What the text is for; a host may choose another model for each."""
    messages: list[PromptMessage]
    """The conversation to complete."""
    system_prompt: str | None = None
    """Instructions that precede the conversation."""
    max_tokens: PositiveInt
    """Largest answer, in tokens."""
    model: str | None = None
    """Model that the configuration requests; the host decides."""
    session_id: SessionId | None = None
    """The session for which the completion is requested."""


class CompletionUsage(Wire, frozen=True, kw_only=True):
    """Token usage of a completion."""

    input_tokens: Count
    """Tokens of the input."""
    output_tokens: Count
    """Tokens of the output."""


class CompleteRuntimeResult(Wire, frozen=True, kw_only=True):
    """Result of `runtime/complete`."""

    text: str
    """What the model wrote."""
    model: str | None = None
    """The model that wrote it."""
    usage: CompletionUsage | None = None
    """Its token usage."""


class CompactRuntimeParams(CompactContextParams, frozen=True, kw_only=True):
    """Params of `runtime/compact`: those of `context/compact`, passed on."""


class CompactRuntimeResult(CompactContextResult, frozen=True, kw_only=True):
    """Result of `runtime/compact`: passed back as that of `context/compact`."""


class TranscriptReplacement(Wire, frozen=True, kw_only=True):
    """One message of the host's transcript to replace."""

    message_id: MessageId
    """Id of the message."""
    message: RawMessage
    """What to put in its place."""


class RewriteTranscriptRuntimeParams(Wire, frozen=True, kw_only=True):
    """Params of `runtime/rewriteTranscript`."""

    session_id: SessionId
    """The session whose transcript to rewrite."""
    session_key: SessionKey | None = None
    """Alias of the session."""
    replacements: list[TranscriptReplacement]
    """The replacements; other messages stay."""


class RewriteTranscriptRuntimeResult(Wire, frozen=True, kw_only=True):
    """Result of `runtime/rewriteTranscript`."""

    changed: bool
    """True if the transcript has changed."""
    bytes_freed: Count
    """Number of bytes by which it shrank."""
    rewritten_entries: Count
    """How many messages were replaced."""
    reason: str | None = None
    """Why nothing, or not everything, was replaced."""
