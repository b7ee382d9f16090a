"""What a session store keeps, how writes are submitted, and what reads return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from sidecar.store.spawn import Spawn


class StoreError(Exception):
    """Base of everything a store raises on purpose.

    - `StoreUnavailable`: the store cannot be opened, reached or written (full disk, newer schema);
      `StoreDamaged` where the file is not sound.
    - `SessionMissing`: the session does not exist in this namespace, or belongs to another agent.
    - `SessionExists`: a session of that name is already there.
    - `FormatMismatch`: the session holds messages of another dialect.
    - `MessageMissing`: the named message is not in the session.
    - `WriteWithdrawn`: the write was cancelled before it began; it has no effect.
    """


class StoreUnavailable(StoreError):
    """Raised when the store cannot serve; `hint` tells the operator what to do."""

    def __init__(self, reason: str, hint: str = "", *, retryable: bool = False) -> None:
        super().__init__(reason)
        self.hint = hint
        self.retryable = retryable


class StoreDamaged(StoreUnavailable):
    """Raised when what is kept is no longer sound, or never was a store."""


class SessionMissing(StoreError):
    """Raised when a session is unknown to this namespace, or is another agent's."""


class SessionExists(StoreError):
    """Raised when a session would be created over an existing one."""


class FormatMismatch(StoreError):
    """Raised when a session belongs to another `messageFormat`."""

    def __init__(self, message_format: str) -> None:
        super().__init__(f"the session holds {message_format} messages")
        self.message_format = message_format


class MessageMissing(StoreError):
    """Raised when a message id is not in the session."""


class WriteWithdrawn(StoreError):
    """Raised when a write was cancelled before it began."""


class SessionRef(NamedTuple):
    """The key of a session: the namespace keeps hosts on one store apart."""

    namespace: str
    session_id: str


class SessionHead(Struct, frozen=True, kw_only=True):
    """The short facts of one session."""

    ref: SessionRef
    uid: int
    """Unique in the store for ever; a session deleted and made anew has another."""
    agent_id: str | None
    session_key: str | None
    message_format: str
    message_count: int
    """Also the position of the newest message: positions run from 1 without gaps."""
    turn_count: int
    revision: int
    """Rises whenever stored messages change in another way than by appending."""
    created_ms: int
    updated_ms: int
    """When messages, summaries, or what a `Touch` tells of, changed last."""


class StoredMessage(NamedTuple):
    """One message as it is kept."""

    position: int
    message_id: str
    turn: int
    turn_id: str
    role: str
    timestamp_ms: int
    """The host's time stamp, otherwise the time of receipt."""
    heartbeat: bool
    body: bytes
    """The bytes that came."""


class Facts(NamedTuple):
    """What is worked out of a message behind the acknowledgement, and kept beside it."""

    tokens: int
    call_key: int
    stamp_key: int
    text_key: int


class KeyedMessage(NamedTuple):
    """A stored message without its body: what alignment needs."""

    position: int
    message_id: str
    host_id: str | None
    """The id the host gave, `None` where the store made one up."""
    inner_id: str | None
    turn_id: str
    facts: Facts | None
    """`None` while nobody has worked them out."""


class NewMessage(Struct, kw_only=True):
    """A message to be stored."""

    body: bytes
    role: str
    opens_turn: bool
    message_id: str | None = None
    inner_id: str | None = None
    timestamp_ms: int | None = None
    heartbeat: bool = False
    turn_id: str | None = None
    """The host's own name for the turn; a name that differs from the newest turn's opens a turn."""
    after: int | None = None
    """Store behind this position (0: in front of everything) instead of at the end; joins that turn.

    Positions are meant as they were before the write; several behind the same one keep their order.
    """
    facts: Facts | None = None
    """Given where they are known already, otherwise worked out later."""


class Appended(NamedTuple):
    """What became of one message of an `Append`."""

    message_id: str
    turn_id: str
    position: int
    stored: bool
    existing: bytes | None
    """The body that is kept under the same id, where `stored` is false."""


class SummaryNode(Struct, frozen=True, kw_only=True):
    """A summary of a range of messages."""

    node_id: str
    first_position: int
    last_position: int
    text: str
    tokens: int
    quality: str
    created_ms: int
    depth: int = 0
    sources: tuple[str, ...] = ()
    """Node ids that were condensed into this one; empty for a summary of messages."""


class SessionSettings(NamedTuple):
    """What `session/configure` has set for a session or an agent."""

    engine: str | None
    config: bytes | None
    """JSON object, `None` where nothing is set."""


class Write:
    """Base of every write: a step that takes effect whole or not at all.

    After completion either `error` is set, or `result` holds what the subclass documents.
    """

    __slots__ = ("done", "error", "result", "started", "withdrawn")
    verb: ClassVar[str]
    result: Any
    error: BaseException | None

    def __init__(self) -> None:
        self.result = None
        self.error = None
        self.done: Callable[[Any], None] | None = None
        self.started = False
        self.withdrawn = False


class Append(Write):
    """Store messages in the order given, creating the session where `create` allows it.

    A message whose `message_id` (first) or `inner_id` (second) is already in the session, or earlier in
    this very write, is not stored again; an `inner_id` decides only where the host gave no id to one of the
    two. With `advancement_key`, nothing happens if the key is recorded already; otherwise the key is recorded
    in the same step.

    `result`: `AppendResult`. Errors: `SessionMissing`, `FormatMismatch`, `MessageMissing` (a place to store
    behind that is not there), `StoreUnavailable`, `WriteWithdrawn`.
    """

    __slots__ = (
        "advancement_key",
        "agent_id",
        "create",
        "message_format",
        "messages",
        "ref",
        "session_key",
    )
    verb = "append"
    result: AppendResult

    def __init__(
        self,
        ref: SessionRef,
        messages: Sequence[NewMessage],
        *,
        message_format: str,
        agent_id: str | None = None,
        session_key: str | None = None,
        advancement_key: str | None = None,
        create: bool = True,
    ) -> None:
        super().__init__()
        self.ref = ref
        self.messages = messages
        self.message_format = message_format
        self.agent_id = agent_id
        self.session_key = session_key
        self.advancement_key = advancement_key
        self.create = create


class AppendResult(NamedTuple):
    """What an `Append` did."""

    items: list[Appended]
    duplicate: bool
    """True where the advancement key was recorded before; then `items` is empty."""
    head: SessionHead


class Truncate(Write):
    """Remove every message behind `after_message_id` (`None`: all), and summaries that reach behind it.

    `result`: the number of messages removed. Errors: `SessionMissing`, `MessageMissing`.
    """

    __slots__ = ("after_message_id", "agent_id", "ref")
    verb = "truncate"
    result: int

    def __init__(self, ref: SessionRef, after_message_id: str | None, *, agent_id: str | None = None) -> None:
        super().__init__()
        self.ref = ref
        self.after_message_id = after_message_id
        self.agent_id = agent_id


class Fork(Write):
    """Make a new session that starts with the messages of another, up to `at_message_id` (`None`: all).

    Ids, turns, summaries, settings and state of that part are the same in both, but for state that is
    `DERIVED`; no message is copied until the parent loses one that the child still has. `result`: the child's
    `SessionHead`.
    Errors: `SessionMissing`, `SessionExists`, `MessageMissing`.
    """

    __slots__ = ("agent_id", "at_message_id", "child", "parent")
    verb = "fork"
    result: SessionHead

    def __init__(
        self,
        parent: SessionRef,
        child: SessionRef,
        at_message_id: str | None,
        *,
        agent_id: str | None = None,
    ) -> None:
        super().__init__()
        self.parent = parent
        self.child = child
        self.at_message_id = at_message_id
        self.agent_id = agent_id


class Delete(Write):
    """Erase a session with all that belongs to it (secure delete). `result`: whether it was there."""

    __slots__ = ("agent_id", "ref")
    verb = "delete"
    result: bool

    def __init__(self, ref: SessionRef, *, agent_id: str | None = None) -> None:
        super().__init__()
        self.ref = ref
        self.agent_id = agent_id


class Configure(Write):
    """Keep settings for one session, or for an agent of a namespace. `result`: `None`.

    `None` leaves a member as it is. The session need not exist.
    """

    __slots__ = ("config", "engine", "namespace", "scope", "scope_id")
    verb = "configure"
    result: None

    def __init__(
        self,
        namespace: str,
        scope: Literal["session", "agent"],
        scope_id: str,
        *,
        engine: str | None = None,
        config: bytes | None = None,
    ) -> None:
        super().__init__()
        self.namespace = namespace
        self.scope = scope
        self.scope_id = scope_id
        self.engine = engine
        self.config = config


DERIVED = "derived."
"""Names of values that begin so are left behind by `Fork`: they can be worked out anew from the messages."""


class SaveState(Write):
    """Keep a small value under a name for one session (`None` removes it). `result`: `None`.

    The session need not exist; `Delete` erases the values too. With `uid`, nothing happens where the session
    is not, or not any more, the one of that number.
    """

    __slots__ = ("name", "ref", "uid", "value")
    verb = "save_state"
    result: None

    def __init__(self, ref: SessionRef, name: str, value: bytes | None, *, uid: int | None = None) -> None:
        super().__init__()
        self.ref = ref
        self.name = name
        self.value = value
        self.uid = uid


class SaveFacts(Write):
    """Keep facts of messages, by position; dropped silently where `revision` is no longer the session's."""

    __slots__ = ("facts", "ref", "revision")
    verb = "save_facts"
    result: None

    def __init__(self, ref: SessionRef, revision: int, facts: Sequence[tuple[int, Facts]]) -> None:
        super().__init__()
        self.ref = ref
        self.revision = revision
        self.facts = facts


class AddSummary(Write):
    """Keep a summary; nodes in `replaces` are removed in the same step.

    `result`: whether it was kept: false where `revision` is no longer the session's.
    """

    __slots__ = ("node", "ref", "replaces", "revision")
    verb = "add_summary"
    result: bool

    def __init__(
        self, ref: SessionRef, node: SummaryNode, *, revision: int, replaces: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.ref = ref
        self.node = node
        self.revision = revision
        self.replaces = replaces


class Touch(Write):
    """Note that something about a session has changed: `updated_ms` is now. `result`: whether it is there."""

    __slots__ = ("ref",)
    verb = "touch"
    result: bool

    def __init__(self, ref: SessionRef) -> None:
        super().__init__()
        self.ref = ref


class RecordAdvancement(Write):
    """Record an advancement key without storing messages. `result`: true where it is new."""

    __slots__ = ("advancement_key", "ref")
    verb = "record_advancement"
    result: bool

    def __init__(self, ref: SessionRef, advancement_key: str) -> None:
        super().__init__()
        self.ref = ref
        self.advancement_key = advancement_key


class SessionStore(Protocol):
    """Keeps sessions durably. All methods are called on the event loop's thread.

    Writes take effect in the order of `submit`, across all sessions; `done` runs on the loop, after the
    commit, in that order. A read sees every write whose `done` has run.
    """

    kind: str
    gather: Callable[[], AbstractContextManager[object]]
    """Entered around the `done` calls of one batch, so that what they send can go out in one piece."""

    async def open(self) -> None:
        """Open or create the store.

        Raises:
            StoreUnavailable: it cannot be opened; nothing was changed.
        """
        ...

    async def close(self) -> None:
        """Finish what was submitted, then release everything. May be called twice."""
        ...

    def submit(self, write: Write, done: Callable[[Any], None]) -> None:
        """Queue a write; `done(write)` is called once, later, with `result` or `error` set."""
        ...

    def withdraw(self, write: Write) -> bool:
        """Take back a write that has not begun: true where it has no effect, and `done` is not called."""
        ...

    async def write(self, write: Write) -> Any:
        """Submit, wait, return `write.result` or raise `write.error`.

        When the waiting task is cancelled, the write is withdrawn if it has not begun; once begun, the
        cancellation is put off until the write has completed and its result is returned.
        """
        ...

    async def session(self, ref: SessionRef) -> SessionHead | None:
        """The head of one session, `None` where there is none."""
        ...

    async def session_by_key(self, namespace: str, session_key: str) -> SessionHead | None:
        """The session that the key was bound to last."""
        ...

    async def sessions(
        self, namespace: str | None, limit: int, cursor: str | None
    ) -> tuple[list[SessionHead], str | None]:
        """Sessions, newest change first, and the cursor for the next page (`None` at the end).

        Raises:
            ValueError: the cursor is not one of ours.
        """
        ...

    async def idle_sessions(self, before_ms: int, limit: int) -> list[SessionHead]:
        """Sessions of all namespaces that were changed before that time, in milliseconds since 1970.

        Those that are being erased come first, then what has waited longest. Snapshots of spawns are left
        out.
        """
        ...

    async def used_bytes(self) -> int:
        """Bytes that everything kept takes, about; room that erased messages have left does not count."""
        ...

    async def messages(self, ref: SessionRef, first: int, last: int) -> list[StoredMessage]:
        """The messages at positions `first` to `last`, both included; what is not there is left out."""
        ...

    async def messages_of_role(self, ref: SessionRef, role: str) -> list[StoredMessage]:
        """All messages of one role, in order. Cheap for `system`, which is indexed."""
        ...

    async def message(self, ref: SessionRef, message_id: str) -> StoredMessage | None:
        """One message by its id."""
        ...

    async def keyed(self, ref: SessionRef, first: int, last: int) -> list[KeyedMessage]:
        """Ids and facts of the messages at these positions, without bodies."""
        ...

    async def turn_start(self, ref: SessionRef, turn: int) -> int | None:
        """The position of the first message of a turn."""
        ...

    async def without_facts(self, limit: int) -> list[tuple[SessionRef, str, int, list[StoredMessage]]]:
        """Messages that still lack facts, in batches a session: ref, message format, revision, messages."""
        ...

    async def summaries(self, ref: SessionRef, *, texts: bool = True) -> list[SummaryNode]:
        """The session's summary nodes by first position, then depth; without `texts` each text is empty."""
        ...

    async def summary_nodes(self, ref: SessionRef, node_ids: Sequence[str]) -> list[SummaryNode]:
        """The summary nodes of these ids, in no particular order; what is not there is left out."""
        ...

    async def settings(
        self, namespace: str, scope: Literal["session", "agent"], scope_id: str
    ) -> SessionSettings:
        """What was configured; both members `None` where nothing was."""
        ...

    async def state(self, ref: SessionRef, name: str) -> bytes | None:
        """A value kept by `SaveState`."""
        ...

    async def advancement_known(self, ref: SessionRef, advancement_key: str) -> bool:
        """Whether the key was recorded."""
        ...

    async def spawns_of_key(self, namespace: str, child_key: str) -> list[Spawn]:
        """The spawned sessions under that key which have not ended, oldest first."""
        ...

    async def spawn_of(self, ref: SessionRef) -> Spawn | None:
        """How the session was spawned, `None` where it was not or has ended."""
        ...

    async def next_spawn_expiry(self) -> int | None:
        """When the next spawn expires, in milliseconds since 1970; `None` where none does."""
        ...
