"""Types of `context/assemble` and `context/explain`."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from sidecar.protocol.base import (
    AnyInjectionPoint,
    Count,
    FallbackFor,
    MessageId,
    PositiveInt,
    RawMessage,
    ResultId,
    SessionParams,
    TurnId,
    Wire,
    known_values,
)

Projection = Annotated[
    Literal["codex"],
    Meta(title="Projection", description="Backend that keeps its own thread; the server refuses others."),
]
"""Backend that keeps its own thread."""

ContentKind = Annotated[
    str,
    known_values(
        "ContentKind",
        "Where a part of the context comes from.",
        "system",
        "summary",
        "activityLog",
        "recent",
        "memory",
        "recall",
    ),
]
"""Where a part of the context comes from."""

ProjectionMode = Annotated[
    str,
    known_values(
        "ProjectionMode",
        "`per_turn` goes with every turn, `thread_bootstrap` begins a new thread.",
        "per_turn",
        "thread_bootstrap",
    ),
]
"""Whether a projection goes with every turn or begins a new thread."""

PromptAuthority = Annotated[
    str,
    known_values(
        "PromptAuthority",
        "Whose estimate the host should trust before it calls the model.",
        "assembled",
        "preassembly_may_overflow",
    ),
]
"""Whose estimate the host should trust before it calls the model."""

Decision = Annotated[
    str,
    known_values(
        "Decision",
        "What became of a stored message in an answer.",
        "sent",
        "summarised",
        "stubbed",
        "dropped",
        "pinned",
    ),
]
"""What became of a stored message in an answer."""


class AssembleContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/assemble`."""

    token_budget: PositiveInt | None = None
    """Maximum tokens of the answer; defaults to `limits.defaultTokenBudget`."""
    messages: list[RawMessage] | None = None
    """The host's transcript; replaces the live tail of the session."""
    prompt: str | None = None
    """The user's text of this turn, if the host adds the message itself."""
    model: str | None = None
    """Model that will read the answer."""
    available_tools: list[str] | None = None
    """Names of the tools that the model may call."""
    citations_mode: str | None = None
    """How memory should cite its sources; for engines, not for the server."""
    previous_result_id: ResultId | None = None
    """Request `edits` against this earlier result; needs `assembleDelta`."""
    projection: Projection | None = None
    """Also request a `contextProjection`."""


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
    """Messages in it: a cache breakpoint belongs after them."""
    tokens: Count
    """Tokens in it."""


class CompositionPart(Wire, frozen=True, kw_only=True):
    """The share of the answer that one kind of content takes."""

    kind: ContentKind
    """Where the content comes from."""
    tokens: Count
    """Its tokens; all parts sum to `estimatedTokens`."""
    message_count: Count
    """Its messages; all parts sum to the length of the list."""


class ContextProjection(Wire, frozen=True, kw_only=True):
    """The context for a backend that keeps its own thread."""

    mode: ProjectionMode
    """`per_turn` goes with every turn, `thread_bootstrap` begins a new thread."""
    epoch: str
    """Identifies the thread: if the value differs, the backend must start a new one."""
    fingerprint: str
    """Hash of the projection's source."""
    developer_instructions: str
    """What goes before the conversation."""
    prompt: str
    """The user's text."""


class AssembleContextResult(Wire, frozen=True, kw_only=True):
    """Result of `context/assemble`; has either `messages` or `edits`."""

    exactly_one: ClassVar[tuple[str, ...]] = ("messages", "edits")

    messages: list[RawMessage] | None = None
    """What the model should see, in this order."""
    edits: list[MessageEdit] | None = None
    """Differences from the previous result, ascending; positions refer to the previous list."""
    estimated_tokens: Count
    """Tokens of messages and additions together; a reserved prompt comes on top."""
    context_epoch: Count
    """Rises when an earlier message is removed, summarised, replaced or moved."""
    stable_prefix: StablePrefix
    """Where a cache breakpoint belongs."""
    result_id: ResultId
    """Identifies this result for `previousResultId` and `context/explain`."""
    composition: list[CompositionPart]
    """Tokens and messages by kind of content."""
    system_prompt_addition: str | None = None
    """Text to append to the host's system prompt."""
    user_message_append: str | None = None
    """Text to append to this turn's user message, and to store with it."""
    prompt_authority: PromptAuthority | None = None
    """Whose estimate the host should trust before it calls the model."""
    context_projection: ContextProjection | None = None
    """Present if `projection` requested it."""
    fallback_for: FallbackFor | None = None
    """Present if another engine gave this answer, with the reason."""


class ExplainContextParams(SessionParams, frozen=True, kw_only=True):
    """Params of `context/explain`; without `resultId` and `turnId`, the newest answer."""

    result_id: ResultId | None = None
    """Id of an assemble result; takes precedence over `turnId`."""
    turn_id: TurnId | None = None
    """The newest assemble result of this turn."""


class ContextDecision(Wire, frozen=True, kw_only=True):
    """What became of one stored message in an answer."""

    message_id: MessageId
    """The message."""
    turn_id: TurnId
    """The turn that it belongs to."""
    tokens: Count
    """Its own size, in tokens."""
    decision: Decision
    """What happened to it."""
    reason: str
    """Why."""
    by: str | None = None
    """What covers it: a summary's node id, or the rule that left it out."""


class InjectedItem(Wire, frozen=True, kw_only=True):
    """Content of an answer that is not a message of the session."""

    plugin_name: str
    """The memory source or engine that it came from."""
    injection_point: AnyInjectionPoint
    """When its source was asked: at session start, or for this prompt."""
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
