"""The interface that engines implement; `calls` defines requests and answers, `session` the session they see.

An engine decides what matters. It never sees the wire: it receives entries, and answers with entries to keep
and texts of its own. Budget, validity, pairing of tool calls, size limits, time limits and the context epoch
are enforced outside, in the same way for every engine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct

from sidecar.engine.calls import MaintainOutcome

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.engine.calls import (
        AfterTurnRequest,
        AssembleRequest,
        Assembly,
        CompactOutcome,
        CompactRequest,
        IncomingMessage,
        IngestOutcome,
        PreflightOutcome,
    )
    from sidecar.engine.entry import Entry
    from sidecar.engine.host import EngineHost
    from sidecar.engine.session import Session, SpawnedSession, SpawnEndReason
    from sidecar.messages.contract import Dialect, Role


class EngineInfo(Struct, frozen=True, kw_only=True):
    """An engine's description of itself."""

    id: str
    name: str
    version: str
    owns_compaction: bool = True
    turn_maintenance_mode: Literal["foreground", "background"] = "foreground"
    host_requirements: tuple[str, ...] = ()
    """Server-to-host requests without which the engine cannot work, for example `runtime/compact`."""


class ContextEngine:
    """Base class of all engines. Required: `info`, `ingest`, `assemble`, `compact`; the rest is optional.

    One instance serves all sessions concurrently. Calls for one session come one at a time, except that other
    calls may run while `compact` and `maintain` wait for the host; those two see a snapshot. Use
    `self.host.run_blocking` for blocking work.
    """

    info: ClassVar[EngineInfo]
    settings_model: ClassVar[type[BaseModel] | str | None] = None
    """The pydantic model of `plugins.entries.<id>.config`, or `module:Class` to import it when needed."""
    tools: ClassVar[Mapping[str, str]] = {}
    """Tools for the model: name to `module:Class` of an `AgentTool`."""
    buffers_episodes: ClassVar[bool] = False
    """True if the conversation is buffered for the episode back end, provided the operator configured one.
    Turns are delivered in the background, on compact and dispose at the latest."""
    shared_state: ClassVar[Collection[str] | None] = None
    """Names of state values that all views of a session share; values saved under other names during a call
    about a view belong to that view alone. `None` if the engine is unaware of views: then values saved in
    other calls are shared, and the sidecar keeps the answers of each view consistent."""
    shortens_results: ClassVar[bool] = False
    """True if the engine shortens old tool results itself; the sidecar's pruning then leaves its sessions
    alone."""

    def __init__(self, host: EngineHost) -> None:
        self.host = host

    @property
    def payload_tokens(self) -> int:
        """Optional: tool results larger than this, in tokens, appear as references; 0 means never."""
        return 0

    @property
    def grant_tokens(self) -> int:
        """Optional: tokens of a session's history that an isolated child may read; 0 means none."""
        return 0

    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        """Ingest one message."""
        raise NotImplementedError

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """Choose what the model should see."""
        raise NotImplementedError

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Shrink the context."""
        raise NotImplementedError

    async def take_note(self, session: Session, entry: Entry) -> None:
        """Optional: preprocess a message just stored, within a millisecond, to speed up the next answer.

        Called after the acknowledgement when the sidecar is idle, for built-in engines only; an engine must
        not depend on it.
        """

    async def after_turn(self, session: Session, request: AfterTurnRequest) -> None:
        """Optional: react to a finished turn whose messages are stored."""

    async def maintain(self, session: Session, budget: int | None) -> MaintainOutcome:  # noqa: ARG002
        """Optional: do background work between turns."""
        return MaintainOutcome()

    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        """Optional: predict whether the next answer fits."""
        raise NotImplementedError

    async def prepare_spawn(self, parent: Session | None, spawn: SpawnedSession) -> None:
        """Optional: prepare for a child session whose initial history is already stored.

        The spawn is stored durably, and `Session.spawn` of the child returns it until the child ends. An
        exception rolls the preparation back. `parent` is `None` if it has no history.
        """

    async def spawn_ended(self, spawn: SpawnedSession, reason: SpawnEndReason) -> None:
        """Optional: react to the end of a spawned session, or to the rollback of its preparation."""

    def display(self, raw: bytes, role: Role, dialect: Dialect) -> bytes | None:  # noqa: ARG002
        """Optional: a message as users should see it, `None` if unchanged; must be cheap."""
        return None

    async def dispose(self) -> None:
        """Optional: flush and release resources; the instance is not used again."""


class StoringEngine(ContextEngine):
    """An engine whose messages the sidecar stores: durable, deduplicated and searchable."""

    tools: ClassVar[Mapping[str, str]] = {
        "context_search": "sidecar.tools.context_search:ContextSearch",
        "context_expand": "sidecar.tools.context_expand:ContextExpand",
        "context_grep": "sidecar.tools.context_grep:ContextGrep",
        "context_status": "sidecar.tools.context_status:ShowStatus",
        "context_compact": "sidecar.tools.context_compact:CompactContext",
    }

    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        """Store the message; overriding engines call this to store it."""
        return await self.host.store_message(session, message)


OPTIONAL_MEMBERS = ("after_turn", "maintain", "preflight", "prepare_spawn", "spawn_ended", "dispose")
"""Optional members; `implements` lists those that an engine defines, in wire spelling."""
