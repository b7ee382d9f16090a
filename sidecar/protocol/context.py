"""Types of the `context/*` methods, except `context/assemble` and `context/explain`."""

from typing import Annotated, Literal

from msgspec import Meta

from sidecar.protocol.base import (
    ABSENT,
    Count,
    FallbackFor,
    Id,
    JsonObject,
    JsonValue,
    MessageId,
    PositiveInt,
    ProgressToken,
    RawMessage,
    SessionParams,
    Timestamp,
    TurnId,
    Wire,
    known_values,
)

CompactionTarget = Annotated[
    Literal["budget", "threshold"],
    Meta(
        title="CompactionTarget",
        description="Compact to the budget, or to the engine's own threshold; other values are refused.",
    ),
]
"""How far a compaction goes."""

CommitStatus = Annotated[
    str,
    known_values("CommitStatus", "Outcome of committing a turn.", "committed", "duplicate"),
]
"""Outcome of committing a turn."""

PreflightAction = Annotated[
    str,
    known_values(
        "PreflightAction", "How the host should react before it calls the model.", "none", "compact"
    ),
]
"""How the host should react before it calls the model."""


class BootstrapContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/bootstrap`."""

    messages: list[RawMessage] | None = None
    """The host's whole transcript; takes precedence over `sessionFile`."""
    session_file: str | None = None
    """Locator of the host's transcript file."""
    session_file_format: str | None = None
    """Name of the importer for the file; if absent, the server detects it."""
    background: bool | None = None
    """Import in steps; meanwhile reading requests proceed and storing requests wait for the end."""


class BootstrapContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/bootstrap`."""

    bootstrapped: bool
    """True if new messages were stored."""
    imported_messages: Count
    """How many messages were stored."""
    reason: str | None = None
    """Why nothing was stored."""
    fallback_for: FallbackFor | None = None
    """Present if the selected engine did not serve this request, with the reason."""


class IngestContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/ingest`."""

    message: RawMessage
    """The message to store."""
    message_id: MessageId | None = None
    """The host's id of the message; takes precedence over an id inside the message."""
    turn_id: TurnId | None = None
    """The host's name of the turn."""
    timestamp: Timestamp | None = None
    """When the message was created; defaults to its own timestamp, else to now."""
    is_heartbeat: bool | None = None
    """True for a message that only keeps the agent awake."""


class IngestContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/ingest`."""

    ingested: bool
    """False if nothing was stored."""
    message_id: MessageId
    """Id under which the message is stored."""
    turn_id: str
    """The turn of the message; empty if nothing is stored, as with `legacy`."""
    display_message: RawMessage = ABSENT
    """The message as people should see it, if different."""
    reason: str | None = None
    """Why nothing was stored, such as `duplicate` or `conflict`."""
    fallback_for: FallbackFor | None = None
    """Present if the selected engine did not serve this request, with the reason."""


class IngestBatchContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/ingestBatch`."""

    messages: list[RawMessage]
    """The messages to store, all or none, in this order."""
    message_ids: list[MessageId | None] | None = None
    """The host's ids, one for each message; `null` if it has none."""
    is_heartbeat: bool | None = None
    """True if the messages only keep the agent awake."""


class IngestBatchContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/ingestBatch`."""

    ingested_count: Count
    """Number of messages stored; known ones do not count."""
    message_ids: list[MessageId]
    """Ids under which the messages are stored, one for each."""
    fallback_for: FallbackFor | None = None
    """Present if the selected engine did not serve this request, with the reason."""


class CompactContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/compact`."""

    token_budget: PositiveInt | None = None
    """Maximum tokens of the context afterwards."""
    force: bool | None = None
    """Compact even if the context fits."""
    force_reason: str | None = None
    """Why it is forced, such as `overflow` or `manual`."""
    current_token_count: Count | None = None
    """The host's own count, if it has one."""
    compaction_target: CompactionTarget | None = None
    """Compact down to the budget, or to the engine's own threshold."""
    custom_instructions: str | None = None
    """What the summary should focus on."""


class CompactionResult(Wire, frozen=True, kw_only=True):
    """What a compaction did."""

    summary: str | None = None
    """The summary that now covers older messages."""
    first_kept_message_id: MessageId | None = None
    """The oldest message that is still sent in full."""
    tokens_before: Count
    """Tokens of the context before."""
    tokens_after: Count | None = None
    """Tokens of the context now."""
    details: JsonValue = ABSENT
    """Further details from the engine."""


class CompactContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/compact`."""

    ok: bool
    """False if something failed; declining is not a failure."""
    compacted: bool
    """True if the context has changed."""
    reason: str | None = None
    """Why nothing was compacted."""
    result: CompactionResult | None = None
    """What was done."""
    fallback_for: FallbackFor | None = None
    """Present if the selected engine did not serve this request, with the reason."""


class AfterTurnContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/afterTurn`."""

    messages: list[RawMessage] | None = None
    """The turn's new messages; the whole transcript if `prePromptMessageCount` is given."""
    pre_prompt_message_count: Count | None = None
    """How many of the messages precede the prompt."""
    token_budget: PositiveInt | None = None
    """Maximum tokens of the next turn's context."""
    usage: JsonObject = ABSENT
    """The provider's usage object, unchanged."""
    is_heartbeat: bool | None = None
    """True if the turn only kept the agent awake."""
    auto_compaction_summary: str | None = None
    """Summary that the host wrote when it compacted on its own."""


class AfterTurnContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/afterTurn`: empty if all went well."""

    fallback_for: FallbackFor | None = None
    """Present if the selected engine did not serve this request, with the reason."""


class CommitTurnContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/commitTurn`."""

    advancement_key: Id
    """Names the turn; each key is committed only once."""
    messages: list[RawMessage]
    """The turn's messages."""
    is_heartbeat: bool | None = None
    """True if the turn only kept the agent awake."""
    admission: JsonValue = ABSENT
    """The host's receipt for the prompt; never interpreted."""
    terminal: JsonValue = ABSENT
    """The host's receipt for the end of the turn; never interpreted."""


class CommitTurnContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/commitTurn`."""

    status: CommitStatus
    """`duplicate` if the key was committed before."""
    fallback_for: FallbackFor | None = None
    """Present if the selected engine did not serve this request, with the reason."""


class MaintainContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/maintain`."""

    token_budget: PositiveInt | None = None
    """Maximum tokens of the context."""


class MaintainContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/maintain`."""

    changed: bool
    """True if the host's transcript was rewritten."""
    bytes_freed: Count
    """Number of bytes by which it shrank."""
    rewritten_entries: Count
    """How many of its messages were rewritten."""
    reason: str | None = None
    """Why nothing was done."""
    fallback_for: FallbackFor | None = None
    """Present if the selected engine did not serve this request, with the reason."""


class PreflightContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/preflight`."""

    token_budget: PositiveInt
    """Maximum tokens of the context."""
    messages: list[RawMessage] | None = None
    """The host's transcript; replaces the live tail of the session."""
    pending_tokens: Count | None = None
    """Tokens that the host is about to add."""


class PreflightContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/preflight`."""

    fits: bool
    """True if the context and the pending tokens fit the budget."""
    estimated_tokens: Count
    """Tokens of both together."""
    action: PreflightAction
    """How the host should react before it calls the model."""
    fallback_for: FallbackFor | None = None
    """Present if the selected engine did not serve this request, with the reason."""


class DisposeContextParams(Wire, frozen=True, kw_only=True):
    """Params of `context/dispose`."""

    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class DisposeContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/dispose`: empty."""
