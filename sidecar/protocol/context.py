"""Types of the `context/*` methods."""

from typing import ClassVar, Literal

from sidecar.protocol.base import (
    ABSENT,
    Count,
    FallbackFor,
    Id,
    InjectionPoint,
    JsonObject,
    JsonValue,
    PositiveInt,
    ProgressToken,
    RawMessage,
    SessionParams,
    Timestamp,
    Wire,
)


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
    message_id: Id | None = None
    """The host's id of the message; an id inside the message comes second."""
    turn_id: Id | None = None
    """The host's name of the turn."""
    timestamp: Timestamp | None = None
    """When the message came about; absent means its own time stamp, else now."""
    is_heartbeat: bool | None = None
    """True for a message that only keeps the agent awake."""


class IngestContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/ingest`."""

    ingested: bool
    """False where nothing was stored."""
    message_id: str
    """Id under which the message is kept."""
    turn_id: str
    """The turn that it belongs to."""
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
    message_ids: list[Id | None] | None = None
    """The host's ids, one for each message; `null` where it has none."""
    is_heartbeat: bool | None = None
    """True where the messages only keep the agent awake."""


class IngestBatchContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/ingestBatch`."""

    ingested_count: Count
    """How many messages were stored; those that were known already do not count."""
    message_ids: list[str]
    """Ids under which the messages are kept, one for each."""
    fallback_for: FallbackFor | None = None
    """Set where the selected engine did not do this, and why."""


class AssembleContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/assemble`."""

    token_budget: PositiveInt | None = None
    """Most tokens that the answer may have; absent means `limits.defaultTokenBudget`."""
    messages: list[RawMessage] | None = None
    """The host's transcript; it stands in for the live tail."""
    prompt: str | None = None
    """Text of the user in this turn, where the host adds the message itself."""
    model: str | None = None
    """Model that will read the answer."""
    available_tools: list[str] | None = None
    """Names of the tools that the model may call."""
    citations_mode: str | None = None
    """How memory should name its sources; engines read it, the server does not."""
    previous_result_id: str | None = None
    """Ask for `edits` against this earlier result; needs `assembleDelta`."""
    projection: Literal["codex"] | None = None
    """Ask for a `contextProjection` too."""


class MessageEdit(Wire, frozen=True, kw_only=True):
    """One change of an earlier list of messages."""

    start: Count
    """Index in the previous list where the change begins."""
    delete_count: Count
    """How many messages of the previous list go."""
    messages: list[RawMessage]
    """What comes in their place."""


class StablePrefix(Wire, frozen=True, kw_only=True):
    """The part of the list that the next result of the same epoch repeats."""

    message_count: Count
    """Messages in it: a cache breakpoint belongs behind them."""
    tokens: Count
    """Tokens in it."""


class CompositionPart(Wire, frozen=True, kw_only=True):
    """What one kind of content takes of the answer."""

    kind: Literal["system", "summary", "activityLog", "recent", "memory", "recall"]
    """Where the content comes from."""
    tokens: Count
    """Tokens of it; all parts sum to `estimatedTokens`."""
    message_count: Count
    """Messages of it; all parts sum to the length of the list."""


class ContextProjection(Wire, frozen=True, kw_only=True):
    """The context for a backend that keeps its own thread."""

    mode: Literal["per_turn", "thread_bootstrap"]
    """`per_turn` goes with every turn, `thread_bootstrap` begins a new thread."""
    epoch: str
    """Names the thread: another value means that the backend must begin anew."""
    fingerprint: str
    """Hash of what the projection was made from."""
    developer_instructions: str
    """What goes before the conversation."""
    prompt: str
    """What goes in as the user's text."""


class AssembleContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/assemble`; has either `messages` or `edits`."""

    exactly_one: ClassVar[tuple[str, ...]] = ("messages", "edits")

    messages: list[RawMessage] | None = None
    """What the model is to see, in this order."""
    edits: list[MessageEdit] | None = None
    """How the list differs from the previous result: ascending, positions in the previous list."""
    estimated_tokens: Count
    """Tokens of messages and additions together; a reserved prompt comes on top."""
    context_epoch: Count
    """Rises when an earlier message is removed, summarised, replaced or moved."""
    stable_prefix: StablePrefix
    """Where a cache breakpoint belongs."""
    result_id: str
    """Names this result for `previousResultId` and `context/explain`."""
    composition: list[CompositionPart]
    """What takes how much."""
    system_prompt_addition: str | None = None
    """Text to put at the end of the host's system prompt."""
    user_message_append: str | None = None
    """Text to put at the end of this turn's user message, and to keep with it."""
    prompt_authority: Literal["assembled", "preassembly_may_overflow"] | None = None
    """Whose estimate the host should trust before it calls the model."""
    context_projection: ContextProjection | None = None
    """Set where `projection` asked for it."""
    fallback_for: FallbackFor | None = None
    """Set where the selected engine did not give this answer, and why."""


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
    compaction_target: Literal["budget", "threshold"] | None = None
    """Come down to the budget, or to the engine's own threshold."""
    custom_instructions: str | None = None
    """What the summary should care for."""


class CompactionResult(Wire, frozen=True, kw_only=True):
    """What a compaction has done."""

    summary: str | None = None
    """The summary that now stands for older messages."""
    first_kept_message_id: str | None = None
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

    status: Literal["committed", "duplicate"]
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
    action: Literal["none", "compact"]
    """What the host should do before it calls the model."""
    fallback_for: FallbackFor | None = None
    """Set where the selected engine did not do this, and why."""


class ExplainContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/explain`; without `resultId` and `turnId`, the newest answer."""

    result_id: Id | None = None
    """Id of an assemble result; wins over `turnId`."""
    turn_id: Id | None = None
    """The newest assemble result of this turn."""


class ContextDecision(Wire, frozen=True, kw_only=True):
    """What became of one stored message in an answer."""

    message_id: str
    """The message."""
    turn_id: str
    """The turn that it belongs to."""
    tokens: Count
    """Its own size, in tokens."""
    decision: Literal["sent", "summarised", "stubbed", "dropped", "pinned"]
    """What became of it."""
    reason: str
    """Why."""
    by: str | None = None
    """What stands for it: a summary's node id, or the rule that left it out."""


class InjectedItem(Wire, frozen=True, kw_only=True):
    """Something in an answer that is no message of the session."""

    plugin_name: str
    """The memory source or engine that it came from."""
    injection_point: InjectionPoint
    """Why it was asked."""
    tokens: Count
    """Its size, in tokens."""
    content: str
    """The text."""
    id: str | None = None
    """Id of the piece within its source."""


class ExplainContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/explain`."""

    decisions: list[ContextDecision]
    """One for each stored message that was considered, oldest first."""
    injected: list[InjectedItem]
    """What was added from elsewhere."""


class DisposeContextParams(Wire, frozen=True, kw_only=True):
    """Params of `context/dispose`."""

    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class DisposeContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/dispose`: nothing."""
