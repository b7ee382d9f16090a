"""Types of the `session/*` methods."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from sidecar.protocol.base import (
    ABSENT,
    Count,
    Id,
    JsonObject,
    MessageFormat,
    Name,
    RawMessage,
    SessionId,
    SessionParams,
    Timestamp,
    Wire,
)

PageSize = Annotated[int, Meta(ge=1, le=1000)]
"""Entries on one page, 1 to 1000."""


class ConfigureSessionParams(Wire, frozen=True, kw_only=True):
    """Params of `session/configure`; at least one of `sessionId` and `agentId` says for whom."""

    at_least_one: ClassVar[tuple[str, ...]] = ("session_id", "agent_id")

    session_id: SessionId | None = None
    """The session to configure."""
    agent_id: Name | None = None
    """Without `sessionId`, the agent to configure; with it, the owner of the session."""
    engine: Id | None = None
    """Engine to use from the next call on; absent keeps the present one."""
    config: JsonObject = ABSENT
    """Settings of the engine; they replace what was set before, absent keeps it."""

    def __post_init__(self) -> None:
        self.require_choice()


class ConfigureSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/configure`: what holds from now on."""

    engine: str
    """Id of the engine."""
    config: JsonObject
    """What has been set for the session or agent; `{}` where nothing is."""


class PinSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/pin`; exactly one of `messageId` and `text`."""

    exactly_one: ClassVar[tuple[str, ...]] = ("message_id", "text")

    message_id: Id | None = None
    """A stored message that must survive compaction."""
    text: str | None = None
    """A text that must stay in the context."""
    note: str | None = None
    """Why, for people."""

    def __post_init__(self) -> None:
        self.require_choice()


class PinSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/pin`."""

    pin_id: str
    """What to unpin by."""


class UnpinSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/unpin`."""

    pin_id: Id
    """The pin to take off."""


class UnpinSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/unpin`."""

    unpinned: bool
    """False where there is no such pin."""


class PinsSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/pins`."""


class Pin(Wire, frozen=True, kw_only=True):
    """Something that must survive compaction."""

    pin_id: str
    """What to unpin by."""
    message_id: str | None = None
    """The message, where a message is pinned."""
    text: str | None = None
    """The text, where a text is pinned."""
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

    after_message_id: Id
    """The last message that stays."""


class TruncateSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/truncate`."""

    removed_messages: Count
    """How many messages were removed."""


class ForkSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/fork`."""

    new_session_id: SessionId
    """Id of the copy; must not exist yet."""
    at_message_id: Id | None = None
    """The last message that the copy has; absent means all of them."""


class ForkSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/fork`."""

    session_id: str
    """Id of the copy."""
    message_count: Count
    """How many messages it has."""


class SummariesSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/summaries`."""


class SummaryNode(Wire, frozen=True, kw_only=True):
    """A summary that stands for a range of messages."""

    node_id: str
    """Id of the summary; recall tools take it."""
    depth: Count
    """0 for a summary of messages, one more than its deepest source for a condensed one."""
    text: str
    """The summary."""
    tokens: Count
    """Its size, in tokens."""
    quality: str
    """How it came about, such as `model` or `deterministic`."""
    created_at: Timestamp
    """When it was written."""
    first_message_id: str
    """The first message that it covers."""
    last_message_id: str
    """The last message that it covers."""
    message_count: Count
    """How many messages it covers."""
    sources: list[str]
    """Node ids that were condensed into it; empty for a summary of messages."""


class SummariesSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/summaries`."""

    summaries: list[SummaryNode]
    """Every summary that is in force, in the order of what it covers; deeper ones first."""
    receipts: list[JsonObject] | None = None
    """The newest compactions, oldest first, as `details` of `context/compact` told of them."""


class ListSessionParams(Wire, frozen=True, kw_only=True):
    """Params of `session/list`."""

    limit: PageSize | None = None
    """Most entries on one page; absent means 100."""
    cursor: Id | None = None
    """Where to go on, from the page before."""
    agent_id: Name | None = None
    """Only sessions of this agent, and those that no agent owns yet."""


class SessionEntry(Wire, frozen=True, kw_only=True):
    """The short facts of one session."""

    session_id: str
    """Id of the session."""
    session_key: str | None = None
    """Its alias."""
    engine: str
    """Id of the engine that serves it."""
    message_format: MessageFormat
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
    """How to ask for the next page; absent on the last."""


class GetSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/get`."""


class SessionImport(Wire, frozen=True, kw_only=True):
    """An import that is not over."""

    state: Literal["running", "interrupted"]
    """`interrupted` where a process ended in it: the same `context/bootstrap` goes on with it."""
    total: Count
    """How many messages the session has at its end."""


class GetSessionResult(SessionEntry, frozen=True, kw_only=True):
    """Result of `session/get`."""

    agent_id: str | None = None
    """Owner of the session."""
    turn_count: Count
    """How many turns it has."""
    importing: SessionImport | None = None
    """Present while an import in the background is not over; `messageCount` says how far it is."""


class ExportSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/export`."""

    cursor: Id | None = None
    """Where to go on, from the page before."""


class ExportedMessage(Wire, frozen=True, kw_only=True):
    """A stored message with what was noted about it."""

    message_id: str
    """Id of the message."""
    turn_id: str
    """The turn that it belongs to."""
    timestamp: Timestamp
    """The host's time stamp, otherwise the time of receipt."""
    message: RawMessage
    """The message, byte for byte."""


class ExportSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/export`."""

    session_id: str
    """Id of the session."""
    message_format: MessageFormat
    """Dialect of the messages."""
    messages: list[ExportedMessage]
    """One page of messages, oldest first."""
    next_cursor: str | None = None
    """How to ask for the next page; absent on the last."""


class DeleteSessionParams(SessionParams, frozen=True, kw_only=True):
    """Params of `session/delete`."""


class DeleteSessionResult(Wire, frozen=True, kw_only=True):
    """Result of `session/delete`."""

    deleted: bool
    """False where there was no such session."""


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
"""What can happen to a session; `changed` is something that another process has done."""


class ChangedSessionParams(Wire, frozen=True, kw_only=True):
    """Params of `session/changed`."""

    session_id: str
    """The session that changed."""
    reason: SessionChange
    """What happened; `created`, `appended`, `changed` only where the host declares `session/changed`."""
