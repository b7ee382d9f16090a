"""What is kept of a spawned session until it has ended, with the writes that change it."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

from sidecar.store.stored import SessionRef
from sidecar.store.writes import Write

SNAPSHOTS = "\0snapshots"
"""Follows a namespace: there the snapshots wait whose session has no id yet. No host can name it."""


class Spawn(NamedTuple):
    """A session that another one has spawned, or is about to."""

    namespace: str
    preparation_id: str
    parent_key: str
    parent_id: str | None
    """The session that spawns; `None` where it has none."""
    child_key: str
    child_id: str | None
    """The spawned session; `None` until it is known."""
    mode: Literal["isolated", "fork"]
    inherited: int
    """Messages that the child begins with."""
    prepared_ms: int
    expires_ms: int | None
    """When it is swept, unless the child has stored something by then."""
    agent_id: str | None = None
    """The agent that spawns; `None` for the host itself."""
    child_agent_id: str | None = None
    """The agent that the child belongs to; `None` leaves it to the first one that uses the child."""
    ended_ms: int | None = None
    """When the child has ended, its session being kept; from then on this only tells what may be erased."""

    @property
    def child(self) -> SessionRef | None:
        """The session of the child, or the snapshot that waits to become it."""
        if self.child_id is not None:
            return SessionRef(self.namespace, self.child_id)
        return self.snapshot if self.mode == "fork" else None

    @property
    def snapshot(self) -> SessionRef:
        """Where the child's beginning is kept while its id is not known."""
        return SessionRef(self.namespace + SNAPSHOTS, self.preparation_id)


class PrepareSpawn(Write):
    """Keep a spawn, with a snapshot of the parent where it forks.

    A spawn of the same child whose session has stored nothing is taken back first. `result`: the `Spawn` with
    `inherited` set. Errors: `SessionMissing` (a fork without a parent that the agent may see),
    `SessionExists` (the child is there), `SessionTaken` (it is another agent's).
    """

    __slots__ = ("spawn",)
    verb = "prepare_spawn"
    result: Spawn

    def __init__(self, spawn: Spawn) -> None:
        super().__init__()
        self.spawn = spawn


class BeginSpawn(Write):
    """Let a session be the child that was prepared under its key, if one is waiting for that agent.

    `result`: the `Spawn`, `None` where none is waiting or the session is there already.
    """

    __slots__ = ("agent_id", "child_key", "ref")
    verb = "begin_spawn"
    result: Spawn | None

    def __init__(self, ref: SessionRef, child_key: str, *, agent_id: str | None = None) -> None:
        super().__init__()
        self.ref = ref
        self.child_key = child_key
        self.agent_id = agent_id


class RollBackSpawn(Write):
    """Remove what was prepared.

    `result`: the `Spawn`, `None` where it is unknown, another agent's, or its child has begun.
    """

    __slots__ = ("agent_id", "namespace", "preparation_id")
    verb = "roll_back_spawn"
    result: Spawn | None

    def __init__(self, namespace: str, preparation_id: str, *, agent_id: str | None = None) -> None:
        super().__init__()
        self.namespace = namespace
        self.preparation_id = preparation_id
        self.agent_id = agent_id


class EndSpawn(Write):
    """Forget the spawns of a child that has ended; with `erase`, also its session.

    A child whose end was noted before is erased too. What was never spawned stays, and what another agent has
    spawned. `result`: `SpawnEnd`.
    """

    __slots__ = ("agent_id", "child_key", "erase", "namespace")
    verb = "end_spawn"
    result: SpawnEnd

    def __init__(self, namespace: str, child_key: str, *, erase: bool, agent_id: str | None = None) -> None:
        super().__init__()
        self.namespace = namespace
        self.child_key = child_key
        self.erase = erase
        self.agent_id = agent_id


class SpawnEnd(NamedTuple):
    """What an `EndSpawn` did."""

    spawns: list[Spawn]
    """The spawns that are forgotten."""
    erased: list[str]
    """The ids of the sessions that are erased."""


class SweepSpawns(Write):
    """Remove the spawns that have expired. `result`: those whose child has stored nothing."""

    __slots__ = ()
    verb = "sweep_spawns"
    result: list[Spawn]


class SpawnRows(Protocol):
    """The small operations on spawns that a kind of store must offer; changes belong to the open step."""

    def add(self, spawn: Spawn) -> None:
        """Keep a spawn; one of the same preparation is replaced."""
        ...

    def drop(self, spawn: Spawn) -> None:
        """Erase a spawn."""
        ...

    def of_preparation(self, namespace: str, preparation_id: str) -> Spawn | None:
        """The spawn of that preparation."""
        ...

    def of_key(self, namespace: str, child_key: str) -> list[Spawn]:
        """The spawns of that child which have not ended, oldest first."""
        ...

    def ended_of_key(self, namespace: str, child_key: str) -> list[Spawn]:
        """The spawns of that child which have ended, oldest first."""
        ...

    def drop_ended(self, ref: SessionRef) -> None:
        """Erase the spawns of this session that have ended."""
        ...

    def of_session(self, ref: SessionRef) -> Spawn | None:
        """The newest spawn whose child is this session, and which has not ended."""
        ...

    def bound(self, namespace: str, session_key: str) -> dict[str | None, int]:
        """The uids of the sessions that each agent has bound the key to last; `None` is the host itself."""
        ...

    def expired(self, now_ms: int) -> list[Spawn]:
        """The spawns whose time is over."""
        ...

    def next_expiry(self) -> int | None:
        """When the next spawn expires, in milliseconds; `None` where none does."""
        ...
