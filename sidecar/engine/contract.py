"""What an engine implements; `calls` has what it is asked and answers, `session` what it is handed.

An engine decides what matters. It never sees the wire: it is handed entries, and answers with entries that
it keeps and texts that it makes. Budget, validity, pairing of tool calls, size limits, time limits and the
context epoch are enforced outside of it, the same way for every engine.
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
    """What an engine says about itself."""

    id: str
    name: str
    version: str
    owns_compaction: bool = True
    turn_maintenance_mode: Literal["foreground", "background"] = "foreground"
    host_requirements: tuple[str, ...] = ()
    """Server-to-host requests without which the engine cannot work, for example `runtime/compact`."""


class ContextEngine:
    """Base of every engine. Required: `info`, `ingest`, `assemble`, `compact`; the rest is optional.

    One instance serves all sessions. Calls of one session come one at a time, sessions side by side, except
    that `compact` and `maintain` work on a snapshot while they wait for the host. Blocking work belongs into
    `self.host.run_blocking`.
    """

    info: ClassVar[EngineInfo]
    settings_model: ClassVar[type[BaseModel] | str | None] = None
    """The pydantic model of `plugins.entries.<id>.config`, or `module:Class` to import it when needed."""
    tools: ClassVar[Mapping[str, str]] = {}
    """Tools for the model, by name, each as `module:Class` of an `AgentTool`."""
    buffers_episodes: ClassVar[bool] = False
    """True where what was said in a turn is buffered for a back end, if the operator has configured one; it
    is delivered behind the turns, at the latest on compact and dispose."""
    shared_state: ClassVar[Collection[str] | None] = None
    """Names of values that all views of a session share; what is saved under other names in a call about a
    view is that view's alone. `None` where the engine does not know of views: then the values that it saves
    elsewhere are shared, and the sidecar holds its answers of each view together."""
    shortens_results: ClassVar[bool] = False
    """True where the engine shortens old tool results itself, by what it knows of them; the sidecar's own
    pruning leaves its sessions alone."""

    def __init__(self, host: EngineHost) -> None:
        self.host = host

    @property
    def payload_tokens(self) -> int:
        """Optional: tokens beyond which a tool result stands in answers as a reference; 0 for never."""
        return 0

    @property
    def grant_tokens(self) -> int:
        """Optional: tokens of a session's history that a child spawned in isolation may read; 0 for none."""
        return 0

    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        """Take in one message."""
        raise NotImplementedError

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """Choose what the model should see."""
        raise NotImplementedError

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Make room."""
        raise NotImplementedError

    async def take_note(self, session: Session, entry: Entry) -> None:
        """Optional: look at a message that was just stored, so that the next answer is quick; a millisecond.

        Called behind the acknowledgement while nothing else is to do, for built-in engines alone; an engine
        must be able to do without.
        """

    async def after_turn(self, session: Session, request: AfterTurnRequest) -> None:
        """Optional: react to a finished turn, whose messages are stored already."""

    async def maintain(self, session: Session, budget: int | None) -> MaintainOutcome:  # noqa: ARG002
        """Optional: background work between turns."""
        return MaintainOutcome()

    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        """Optional: predict whether the next answer fits."""
        raise NotImplementedError

    async def prepare_spawn(self, parent: Session | None, spawn: SpawnedSession) -> None:
        """Optional: a session is about to be spawned; its beginning is stored already.

        The spawn is kept durably and handed out by `Session.spawn` of the child until it ends. What is raised
        here takes the preparation back. `parent` is `None` where it has no history.
        """

    async def spawn_ended(self, spawn: SpawnedSession, reason: SpawnEndReason) -> None:
        """Optional: a spawned session has ended, or its preparation was taken back."""

    def display(self, raw: bytes, role: Role, dialect: Dialect) -> bytes | None:  # noqa: ARG002
        """Optional: a message as users should see it, `None` where that is the message itself; cheap."""
        return None

    async def dispose(self) -> None:
        """Optional: flush and release; the instance is not used again."""


class StoringEngine(ContextEngine):
    """An engine whose messages the sidecar stores: durable, deduplicated, searchable."""

    tools: ClassVar[Mapping[str, str]] = {
        "context_search": "sidecar.tools.context_search:ContextSearch",
        "context_expand": "sidecar.tools.context_expand:ContextExpand",
        "context_grep": "sidecar.tools.context_grep:ContextGrep",
    }

    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        """Store the message; engines that override this call it to store."""
        return await self.host.store_message(session, message)


OPTIONAL_MEMBERS = ("after_turn", "maintain", "preflight", "prepare_spawn", "spawn_ended", "dispose")
"""Members that an engine may leave to the server; `implements` names those it has, in wire spelling."""
