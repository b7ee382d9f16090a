"""Types of the `session/*` and `subagent/*` methods."""

from typing import Annotated, ClassVar, Literal, get_args

from msgspec import Meta

from sidecar.protocol.base import (
    ABSENT,
    AgentId,
    AnyMessageFormat,
    Count,
    EngineId,
    Id,
    JsonObject,
    MessageId,
    PositiveInt,
    ProgressToken,
    RawMessage,
    SessionId,
    SessionKey,
    SessionParams,
    Timestamp,
    TurnId,
    Wire,
    known_values,
)

PageSize = Annotated[int, Meta(ge=1, le=1000)]
"""Entries on one page, 1 to 1000."""


class ConfigureSessionParams(Wire, frozen=True, kw_only=True):
    """Params of `session/configure`; at least one of `sessionId` and `agentId` is required."""

    at_least_one: ClassVar[tuple[str, ...]] = ("session_id", "agent_id")

    session_id: SessionId | None = None
    """The session to configure."""
    agent_id: AgentId | None = None
    """Without `sessionId`, the agent to configure; with it, the owner of the session."""
    engine: EngineId | None = None
    """Engine to use from the next call on; absent keeps the current one."""
    config: JsonObject = ABSENT
    """Settings of the engine; they replace the earlier ones. Absent keeps those."""

    def __post_init__(self) -> None:
        self.require_choice()


class ConfigureSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/configure`: the settings now in force."""

    engine: EngineId
    """Id of the engine."""
    config: JsonObject
    """The settings of the session or agent; `{}` if none."""


class PinSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/pin`; exactly one of `messageId` and `text`."""

    exactly_one: ClassVar[tuple[str, ...]] = ("message_id", "text")

    message_id: MessageId | None = None
    """A stored message to keep through compaction."""
    text: str | None = None
    """A text to keep in the context."""
    note: str | None = None
    """Why, for people."""

    def __post_init__(self) -> None:
        self.require_choice()


class PinSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/pin`."""

    pin_id: str
    """Id for `session/unpin`."""


class UnpinSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/unpin`."""

    pin_id: Id
    """The pin to remove."""


class UnpinSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/unpin`."""

    unpinned: bool
    """False if there is no such pin."""


class PinsSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/pins`."""


class Pin(Wire, frozen=True, kw_only=True):
    """Something that must survive compaction."""

    pin_id: str
    """Id for `session/unpin`."""
    message_id: MessageId | None = None
    """The message, if a message is pinned."""
    text: str | None = None
    """The text, if a text is pinned."""
    note: str | None = None
    """Why, for people."""
    created_at: Timestamp
    """When it was pinned."""


class PinsSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/pins`."""

    pins: list[Pin]
    """Every pin of the session, oldest first."""


class TruncateSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/truncate`."""

    after_message_id: MessageId
    """The last message to keep."""


class TruncateSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/truncate`."""

    removed_messages: Count
    """How many messages were removed."""


class ForkSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/fork`."""

    new_session_id: SessionId
    """Id of the copy; must not exist yet."""
    at_message_id: MessageId | None = None
    """The last message to copy; defaults to all of them."""


class ForkSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/fork`."""

    session_id: SessionId
    """Id of the copy."""
    message_count: Count
    """How many messages it has."""


class SummariesSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/summaries`."""


class SummaryNode(Wire, frozen=True, kw_only=True):
    """A summary that covers a range of messages."""

    node_id: str
    """Id of the summary; the recall tools accept it."""
    depth: Count
    """0 for a summary of messages, one more than its deepest source for a condensed one."""
    text: str
    """The summary."""
    tokens: Count
    """Its size, in tokens."""
    quality: str
    """How it was written, such as `model` or `deterministic`."""
    created_at: Timestamp
    """When it was written."""
    first_message_id: MessageId
    """The first message that it covers."""
    last_message_id: MessageId
    """The last message that it covers."""
    message_count: Count
    """How many messages it covers."""
    sources: list[str]
    """Node ids that were condensed into it; empty for a summary of messages."""


class SummariesSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/summaries`."""

    summaries: list[SummaryNode]
    """Every summary in force, in the order of what it covers, deeper ones first."""
    receipts: list[JsonObject] | None = None
    """The newest compactions, oldest first, as in `details` of `context/compact`."""


class ListSessionParams(Wire, frozen=True, kw_only=True):
    """Params of `session/list`."""

    limit: PageSize | None = None
    """Maximum entries on one page; defaults to 100."""
    cursor: Id | None = None
    """Where to continue, from the previous page."""
    agent_id: AgentId | None = None
    """Only sessions of this agent, and those that no agent owns yet."""


class SessionEntry(Wire, frozen=True, kw_only=True):
    """The key facts of one session."""

    session_id: SessionId
    """Id of the session."""
    session_key: SessionKey | None = None
    """Its alias."""
    engine: EngineId
    """Id of the engine that serves it."""
    message_format: AnyMessageFormat
    """Dialect of its messages."""
    message_count: Count
    """How many messages are stored."""
    created_at: Timestamp
    """When the first message was stored."""
    updated_at: Timestamp
    """When it last changed."""


class ListSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/list`."""

    sessions: list[SessionEntry]
    """One page of sessions, latest change first."""
    next_cursor: str | None = None
    """Requests the next page; absent on the last."""


class GetSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/get`."""


ImportState = Annotated[
    str, known_values("ImportState", "State of an unfinished import.", "running", "interrupted")
]
"""State of an unfinished import."""


class SessionImport(Wire, frozen=True, kw_only=True):
    """An unfinished import."""

    state: ImportState
    """`interrupted` if a process ended during it: the same `context/bootstrap` resumes it."""
    total: Count
    """Number of messages the session will have at the end."""


class GetSessionResult(SessionEntry, frozen=True, kw_only=True):
    """Result of `session/get`."""

    agent_id: AgentId | None = None
    """Owner of the session."""
    turn_count: Count
    """How many turns it has."""
    importing: SessionImport | None = None
    """Present until a background import is complete; `messageCount` shows its progress."""


class ExportSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/export`."""

    cursor: Id | None = None
    """Where to continue, from the previous page."""


class ExportedMessage(Wire, frozen=True, kw_only=True):
    """A stored message with its metadata."""

    message_id: MessageId
    """Id of the message."""
    turn_id: TurnId
    """The turn that it belongs to."""
    timestamp: Timestamp
    """The host's timestamp, otherwise the time of receipt."""
    message: RawMessage
    """The message, byte for byte."""
    issued: list[str] | None = None
    """Fenced parts of its text that this server wrote, such as memory that the host stored with the message.

    Each is quoted exactly. No other server can verify them, so an import leaves them out.
    """


class ExportSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/export`."""

    session_id: SessionId
    """Id of the session."""
    message_format: AnyMessageFormat
    """Dialect of the messages."""
    messages: list[ExportedMessage]
    """One page of messages, oldest first."""
    next_cursor: str | None = None
    """Requests the next page; absent on the last."""


class DeleteSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/delete`."""


class DeleteSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/delete`."""

    deleted: bool
    """False if there was no such session."""


SessionChange = Literal[
    "configured",
    "pinned",
    "unpinned",
    "truncated",
    "compacted",
    "maintained",
    "deleted",
    "created",
    "appended",
    "changed",
]
"""What can happen to a session; `changed` is a change by another process."""

AnySessionChange = Annotated[
    str,
    known_values(
        "SessionChange",
        "What happened to a session; `changed` is a change by another process.",
        *get_args(SessionChange),
    ),
]
"""What happened to a session, known here or not."""


class ChangedSessionParams(Wire, frozen=True, kw_only=True):
    """Params of `session/changed`."""

    session_id: SessionId
    """The session that changed."""
    reason: AnySessionChange
    """What happened; `created`, `appended`, `changed` only if the host declares `session/changed`."""


SpawnMode = Annotated[
    Literal["isolated", "fork"],
    Meta(
        title="SpawnMode",
        description="`fork` starts the child from a snapshot of the parent, `isolated` starts it empty; "
        "the server refuses others.",
    ),
]
"""How a child session begins."""

EndReason = Literal["deleted", "completed", "swept", "released"]
"""Why a child session has ended."""

AnyEndReason = Annotated[
    EndReason,
    known_values(
        "EndReason",
        "Why a child session has ended; `deleted` erases its data, every other reason keeps it.",
        *get_args(EndReason),
    ),
]
"""Why a child session has ended, as hosts report it."""


class PrepareSpawnSubagentParams(Wire, frozen=True, kw_only=True):
    """Params of `subagent/prepareSpawn`."""

    parent_session_key: SessionKey
    """Key of the session that spawns."""
    child_session_key: SessionKey
    """Key of the session that is about to begin."""
    context_mode: SpawnMode
    """`fork` starts the child from a snapshot of the parent, `isolated` starts it empty."""
    parent_session_id: SessionId | None = None
    """Id of the parent's session, if the host knows it."""
    child_session_id: SessionId | None = None
    """Id of the child's session, if the host knows it."""
    parent_session_file: str | None = None
    """The host's locator of the parent's transcript; never opened."""
    child_session_file: str | None = None
    """The host's locator of the child's transcript; never opened."""
    agent_id: AgentId | None = None
    """The agent that spawns; it can fork only its own sessions."""
    child_agent_id: AgentId | None = None
    """Owner of the child; defaults to `agentId`."""
    ttl_ms: PositiveInt | None = None
    """Milliseconds after which the preparation is swept."""
    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class PrepareSpawnSubagentResult(Wire, frozen=True, kw_only=True):
    """Result of `subagent/prepareSpawn`."""

    preparation_id: str | None = None
    """Id for `subagent/rollbackSpawn`; absent if nothing was prepared."""


class RollbackSpawnSubagentParams(Wire, frozen=True, kw_only=True):
    """Params of `subagent/rollbackSpawn`."""

    preparation_id: Id
    """The preparation to roll back."""
    agent_id: AgentId | None = None
    """The agent that spawned; preparations of other agents are unknown to it."""
    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class RollbackSpawnSubagentResult(Wire, frozen=True, kw_only=True):
    """Result of `subagent/rollbackSpawn`."""

    rolled_back: bool
    """False if the preparation is unknown, or the child has already stored something."""


class EndedSubagentParams(Wire, frozen=True, kw_only=True):
    """Params of `subagent/ended`."""

    child_session_key: SessionKey
    """Key of the session that has ended."""
    reason: AnyEndReason
    """`deleted` erases the child's data, if it was spawned; the other reasons keep it."""
    agent_id: AgentId | None = None
    """The agent that spawned; children of other agents are left alone."""
    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class EndedSubagentResult(Wire, frozen=True, kw_only=True):
    """Result of `subagent/ended`: empty."""
