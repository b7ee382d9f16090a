"""Types of the `context/*` methods that store messages or make room."""

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
        description="Come down to the budget, or to the engine's own threshold; the server refuses others.",
    ),
]
"""How far a compaction goes."""

CommitStatus = Annotated[
    str,
    known_values("CommitStatus", "What became of a turn that was to be committed.", "committed", "duplicate"),
]
"""What became of a turn that was to be committed."""

PreflightAction = Annotated[
    str,
    known_values("PreflightAction", "What the host should do before it calls the model.", "none", "compact"),
]
"""What the host should do before it calls the model."""


class BootstrapContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/bootstrap`."""

    messages: list[RawMessage] | None = None
    """The host's whole transcript; wins over `sessionFile`."""
    session_file: str | None = None
    """Locator of the host's transcript file."""
    session_file_format: str | None = None
    """Name of the importer for the file; absent means that the server finds out."""
    background: bool | None = None
    """Import step by step: requests that store nothing go on meanwhile, those that do wait for its end."""


class BootstrapContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/bootstrap`."""

    bootstrapped: bool
    """True where something new was stored."""
    imported_messages: Count
    """How many messages were stored."""
    reason: str | None = None
    """Why nothing was stored."""
    fallback_for: FallbackFor | None = None
    """Set where the selected engine did not do this, and why."""


class IngestContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/ingest`."""

    message: RawMessage
    """The message to store."""
    message_id: MessageId | None = None
    """The host's id of the message; an id inside the message comes second."""
    turn_id: TurnId | None = None
    """The host's name of the turn."""
    timestamp: Timestamp | None = None
    """When the message came about; absent means its own time stamp, else now."""
    is_heartbeat: bool | None = None
    """True for a message that only keeps the agent awake."""


class IngestContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/ingest`."""

    ingested: bool
    """False where nothing was stored."""
    message_id: MessageId
    """Id under which the message is kept."""
    turn_id: str
    """The turn that it belongs to; empty where nothing is stored, as with `legacy`."""
    display_message: RawMessage = ABSENT
    """The message as people should see it, where that differs."""
    reason: str | None = None
    """Why nothing was stored, such as `duplicate` or `conflict`."""
    fallback_for: FallbackFor | None = None
    """Set where the selected engine did not do this, and why."""


class IngestBatchContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/ingestBatch`."""

    messages: list[RawMessage]
    """The messages to store, all or none, in this order."""
    message_ids: list[MessageId | None] | None = None
    """The host's ids, one for each message; `null` where it has none."""
    is_heartbeat: bool | None = None
    """True where the messages only keep the agent awake."""


class IngestBatchContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/ingestBatch`."""

    ingested_count: Count
    """How many messages were stored; those that were known already do not count."""
    message_ids: list[MessageId]
    """Ids under which the messages are kept, one for each."""
    fallback_for: FallbackFor | None = None
    """Set where the selected engine did not do this, and why."""


class CompactContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/compact`."""

    token_budget: PositiveInt | None = None
    """Most tokens that the context may have afterwards."""
    force: bool | None = None
    """Compact even where the context fits."""
    force_reason: str | None = None
    """Why it is forced, such as `overflow` or `manual`."""
    current_token_count: Count | None = None
    """What the host measured, where it knows better."""
    compaction_target: CompactionTarget | None = None
    """Come down to the budget, or to the engine's own threshold."""
    custom_instructions: str | None = None
    """What the summary should care for."""


class CompactionResult(Wire, frozen=True, kw_only=True):
    """What a compaction has done."""

    summary: str | None = None
    """The summary that now stands for older messages."""
    first_kept_message_id: MessageId | None = None
    """The oldest message that is still sent in full."""
    tokens_before: Count
    """Tokens of the context before."""
    tokens_after: Count | None = None
    """Tokens of the context now."""
    details: JsonValue = ABSENT
    """More that the engine has to say."""


class CompactContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/compact`."""

    ok: bool
    """False where something failed; declining is no failure."""
    compacted: bool
    """True where the context is another one now."""
    reason: str | None = None
    """Why nothing was compacted."""
    result: CompactionResult | None = None
    """What was done."""
    fallback_for: FallbackFor | None = None
    """Set where the selected engine did not do this, and why."""


class AfterTurnContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/afterTurn`."""

    messages: list[RawMessage] | None = None
    """The turn's new messages; the whole transcript where `prePromptMessageCount` is given."""
    pre_prompt_message_count: Count | None = None
    """How many of the messages were there before the prompt."""
    token_budget: PositiveInt | None = None
    """Most tokens that the context of the next turn may have."""
    usage: JsonObject = ABSENT
    """Usage that the provider reported, in its own words."""
    is_heartbeat: bool | None = None
    """True where the turn only kept the agent awake."""
    auto_compaction_summary: str | None = None
    """Summary that the host wrote when it compacted on its own."""


class AfterTurnContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/afterTurn`: nothing where all went well."""

    fallback_for: FallbackFor | None = None
    """Set where the selected engine did not do this, and why."""


class CommitTurnContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/commitTurn`."""

    advancement_key: Id
    """Names the turn; the same key is committed once."""
    messages: list[RawMessage]
    """The turn's messages."""
    is_heartbeat: bool | None = None
    """True where the turn only kept the agent awake."""
    admission: JsonValue = ABSENT
    """The host's receipt for the prompt; never interpreted."""
    terminal: JsonValue = ABSENT
    """The host's receipt for the end of the turn; never interpreted."""


class CommitTurnContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/commitTurn`."""

    status: CommitStatus
    """`duplicate` where the key has been committed before."""
    fallback_for: FallbackFor | None = None
    """Set where the selected engine did not do this, and why."""


class MaintainContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/maintain`."""

    token_budget: PositiveInt | None = None
    """Most tokens that the context may have."""


class MaintainContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/maintain`."""

    changed: bool
    """True where the host's transcript was rewritten."""
    bytes_freed: Count
    """By how many bytes it shrank."""
    rewritten_entries: Count
    """How many of its messages were rewritten."""
    reason: str | None = None
    """Why nothing was done."""
    fallback_for: FallbackFor | None = None
    """Set where the selected engine did not do this, and why."""


class PreflightContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/preflight`."""

    token_budget: PositiveInt
    """Most tokens that the context may have."""
    messages: list[RawMessage] | None = None
    """The host's transcript; it stands in for the live tail."""
    pending_tokens: Count | None = None
    """Tokens that the host is about to add."""


class PreflightContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/preflight`."""

    fits: bool
    """True where the context and what is pending fit the budget."""
    estimated_tokens: Count
    """Tokens of both together."""
    action: PreflightAction
    """What the host should do before it calls the model."""
    fallback_for: FallbackFor | None = None
    """Set where the selected engine did not do this, and why."""


class DisposeContextParams(Wire, frozen=True, kw_only=True):
    """Params of `context/dispose`."""

    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class DisposeContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/dispose`: nothing."""
