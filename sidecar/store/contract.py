"""What a session store does; `stored` has its rows, `writes` what can be written, `errors` what it raises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from sidecar.store.search import SearchState
    from sidecar.store.spawn import Spawn
    from sidecar.store.stored import (
        KeyedMessage,
        SessionHead,
        SessionRef,
        SessionSettings,
        SessionSnapshot,
        StoredMessage,
        SummaryNode,
    )
    from sidecar.store.writes import Write


class SessionStore(Protocol):
    """Keeps sessions durably. All methods are called on the event loop's thread.

    Writes take effect in the order of `submit`, across all sessions; `done` runs on the loop, after the
    commit, in that order. A read sees every write whose `done` has run.
    """

    kind: str
    gather: Callable[[], AbstractContextManager[object]]
    """Entered around the `done` calls of one batch, so that what they send can go out in one piece."""
    secrets: list[bytes]
    """With these the store's own texts are told from forged ones; the first is to be used for new ones. They
    are made with the store and kept in it alone. Known once it is open."""

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

    async def session_by_key(
        self, namespace: str, session_key: str, agent_id: str | None = None
    ) -> SessionHead | None:
        """The session that the agent has bound the key to last; see `admission.meant_by_key`."""
        ...

    async def sessions(
        self, namespace: str | None, limit: int, cursor: str | None, agent_id: str | None = None
    ) -> tuple[list[SessionHead], str | None]:
        """Sessions, newest change first, and the cursor for the next page (`None` at the end).

        With `agent_id`, those that the agent may see.

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

    async def elected(self, task: str, for_s: float) -> bool:
        """Whether this process does a task for everybody that shares the store, for so many seconds.

        It stays so for the process that asks again in time.
        """
        ...

    async def used_bytes(self) -> int:
        """Bytes that everything kept takes, about; room that erased messages have left does not count."""
        ...

    async def search_state(self) -> SearchState:
        """How far the index has come."""
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

    async def snapshot(self, ref: SessionRef, agent_id: str | None = None) -> SessionSnapshot:
        """What a request of the agent needs to know of a session at its start, from one consistent state."""
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
