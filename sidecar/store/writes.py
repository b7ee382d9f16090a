"""What can be written to a store, each write whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from sidecar.store.stored import Appended, Facts, NewMessage, SessionHead, SessionRef, SummaryNode


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
    """Erase a session with all that belongs to it (secure delete).

    `result`: whether it was there; another agent's is not, and stays.
    """

    __slots__ = ("agent_id", "ref")
    verb = "delete"
    result: bool

    def __init__(self, ref: SessionRef, *, agent_id: str | None = None) -> None:
        super().__init__()
        self.ref = ref
        self.agent_id = agent_id


class Adopt(Write):
    """Let a session belong to an agent if it is nobody's yet. `result`: `None`. Error: `SessionMissing`."""

    __slots__ = ("agent_id", "ref")
    verb = "adopt"
    result: None

    def __init__(self, ref: SessionRef, agent_id: str) -> None:
        super().__init__()
        self.ref = ref
        self.agent_id = agent_id


class Configure(Write):
    """Keep settings for one session, or for an agent of a namespace. `result`: `None`.

    `None` leaves a member as it is. The session need not exist: what an agent sets for one that is not there,
    or not its own, waits until it is.
    """

    __slots__ = ("agent_id", "config", "engine", "namespace", "ref", "scope", "scope_id")
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
        agent_id: str | None = None,
    ) -> None:
        super().__init__()
        from sidecar.store.stored import SessionRef

        self.ref = SessionRef(namespace, scope_id) if scope == "session" else None
        self.agent_id = agent_id
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
    """Note that something about a session has changed: `updated_ms` is now.

    `result`: whether it is there; another agent's is not.
    """

    __slots__ = ("agent_id", "ref")
    verb = "touch"
    result: bool

    def __init__(self, ref: SessionRef, *, agent_id: str | None = None) -> None:
        super().__init__()
        self.ref = ref
        self.agent_id = agent_id


class RecordAdvancement(Write):
    """Record an advancement key without storing messages. `result`: true where it is new."""

    __slots__ = ("advancement_key", "ref")
    verb = "record_advancement"
    result: bool

    def __init__(self, ref: SessionRef, advancement_key: str) -> None:
        super().__init__()
        self.ref = ref
        self.advancement_key = advancement_key
