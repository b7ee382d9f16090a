"""What an engine implements, what it is asked, and what it answers.

An engine decides what matters. It never sees the wire: it is handed entries, and answers with entries that
it keeps and texts that it makes. Budget, validity, pairing of tool calls, size limits, time limits and the
context epoch are enforced outside of it, the same way for every engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.engine.entry import Entry
    from sidecar.engine.guard.pinned import Pin
    from sidecar.engine.host import EngineHost, Report
    from sidecar.messages.contract import Dialect, Role
    from sidecar.store.contract import SummaryNode
    from sidecar.store.search import SearchQuery, SearchResult

Kind = Literal["system", "summary", "activityLog", "recent", "memory", "recall"]
"""What a part of the answer is for, as `composition` names it."""

SpawnEndReason = Literal["deleted", "completed", "swept", "released", "rolledBack"]
"""Why a spawned session is none any more."""


class EngineInfo(Struct, frozen=True, kw_only=True):
    """What an engine says about itself."""

    id: str
    name: str
    version: str
    owns_compaction: bool = True
    turn_maintenance_mode: Literal["foreground", "background"] = "foreground"
    host_requirements: tuple[str, ...] = ()
    """Server-to-host requests without which the engine cannot work, for example `runtime/compact`."""


class Tail(NamedTuple):
    """The newest part of a timeline."""

    entries: list[Entry]
    """In order, oldest first."""
    whole: bool
    """True where the entries reach back to the start."""


class Timeline(Protocol):
    """The session from its first message to the newest, without loading all of it.

    Heartbeats that a newer turn has made stale are not on it.
    """

    async def tail(self, tokens: int) -> Tail:
        """The newest entries, going back until they hold more than `tokens` tokens, or to the start."""
        ...

    async def opener(self, turn: int) -> Entry | None:
        """The user message that opened a turn, `None` where the turn has none."""
        ...

    async def system(self) -> list[Entry]:
        """The system messages of the whole timeline, in order."""
        ...

    async def resolve(self, message_id: str) -> str | None:
        """The id that a message has on the timeline now, `None` where it is not there (any more).

        A message that was named before it was stored has got another id since.
        """
        ...

    async def before(self, message_id: str, limit: int, since: str | None = None) -> list[Entry]:
        """The `limit` entries in front of a message, oldest first, back to `since` (included) at most."""
        ...


class History(Protocol):
    """The stored messages of a session, whatever of them the host's own list still shows."""

    @property
    def version(self) -> str:
        """Another one whenever stored messages change in another way than by appending."""
        ...

    @property
    def count(self) -> int:
        """How many messages are stored: also the position of the newest."""
        ...

    async def read(self, first: int, last: int) -> list[Entry]:
        """The entries at positions `first` to `last`, both included; what is not there is left out."""
        ...

    async def search(self, query: SearchQuery) -> SearchResult:
        """The stored messages of the session that match.

        Raises:
            SearchError: the query cannot be answered.
        """
        ...


class SpawnedSession(Struct, frozen=True, kw_only=True):
    """A session that another one has spawned, or is about to."""

    preparation_id: str
    parent_session_key: str
    parent_session_id: str | None
    child_session_key: str
    child_session_id: str | None
    """`None` until the child has sent its first request."""
    context_mode: Literal["isolated", "fork"]
    prepared_ms: int
    expires_ms: int | None
    """When the preparation is swept, in milliseconds since 1970; `None` where it is not, or the child has
    stored something by then."""


class Session(Protocol):
    """One session, as handed to an engine for the length of a call."""

    @property
    def session_id(self) -> str:
        """The host's key of the session."""
        ...

    @property
    def agent_id(self) -> str | None:
        """The agent that owns the session."""
        ...

    @property
    def timeline(self) -> Timeline:
        """The session's messages; in `assemble` and `preflight`, the host's own list is its newest part."""
        ...

    @property
    def history(self) -> History:
        """The session's stored messages by position."""
        ...

    def calibrated(self, tokens: int) -> int:
        """What so many tokens of `host.tokens` count in a budget: entries come with that count."""
        ...

    async def state(self, name: str) -> bytes | None:
        """A value that `save_state` kept under this name for this engine."""
        ...

    async def save_state(self, name: str, value: bytes | None) -> None:
        """Keep a small value durably; `None` removes it."""
        ...

    async def summaries(self) -> list[SummaryNode]:
        """The session's summaries by first position."""
        ...

    async def summary_nodes(self, node_ids: Sequence[str]) -> list[SummaryNode]:
        """The summaries of these ids; what is not there is left out."""
        ...

    async def add_summary(self, node: SummaryNode, replaces: Sequence[str] = ()) -> bool:
        """Keep a summary in place of others; false where the history changed since the call began."""
        ...

    async def spawn(self) -> SpawnedSession | None:
        """How the session was spawned by another one, `None` where it was not or has ended as a child."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text as the budget counts them: calibrated by what the provider has reported."""
        ...

    async def pins(self) -> list[Pin]:
        """What is pinned: the guard keeps it in every answer, whatever the engine chooses."""
        ...

    def report_to(self, report: Report) -> None:
        """Let `progress` go there from now on."""
        ...

    def progress(self, message: str, percentage: int | None = None) -> None:
        """Report progress to the host, if it asked for it."""
        ...


class IncomingMessage(Struct, frozen=True, kw_only=True):
    """A message that the host hands over."""

    raw: bytes
    message_id: str | None = None
    turn_id: str | None = None
    timestamp_ms: int | None = None
    heartbeat: bool = False


class IngestOutcome(Struct, frozen=True, kw_only=True):
    """What became of a message."""

    ingested: bool
    message_id: str = ""
    turn_id: str = ""
    display_message: bytes | None = None
    """The message as users should see it, where that differs."""
    reason: str | None = None


class AssembleRequest(Struct, frozen=True, kw_only=True):
    """What the host asks to be put in front of the model."""

    budget: int
    """Tokens for everything that the answer holds; what the prompt needs is already taken off."""
    prompt: str = ""
    model: str | None = None
    available_tools: tuple[str, ...] = ()
    citations_mode: str | None = None


class Kept(Struct, frozen=True):
    """A message of the session that goes into the answer as it is."""

    entry: Entry
    kind: Kind = "recent"


class Made(Struct, frozen=True, kw_only=True):
    """A text of the engine's that goes into the answer as a marked message."""

    role: Literal["user", "assistant"]
    kind: Kind
    ref: str
    """Names what the text stands for, such as a summary's node id."""
    text: str
    timestamp_ms: int
    covers: tuple[int, int] | None = None
    """First and last position that the text stands for."""
    lasting: bool = False
    """True where memory or recall keeps its place in the answers to come."""


class Assembly(Struct, frozen=True, kw_only=True):
    """An engine's answer to `assemble`."""

    items: Sequence[Kept | Made]
    system_prompt_addition: str | None = None
    user_message_append: str | None = None
    as_came: bool = False
    """The host's list unchanged; heeded for `legacy` only."""


class CompactRequest(Struct, frozen=True, kw_only=True):
    """What the host wants of a compaction."""

    budget: int
    force: bool = False
    force_reason: str | None = None
    current_token_count: int | None = None
    target: Literal["budget", "threshold"] = "threshold"
    custom_instructions: str | None = None


class CompactOutcome(Struct, frozen=True, kw_only=True):
    """What a compaction did; `compacted` false with a reason where there was nothing to do."""

    ok: bool = True
    compacted: bool
    reason: str | None = None
    summary: str | None = None
    first_kept_message_id: str | None = None
    tokens_before: int = 0
    tokens_after: int | None = None
    details: bytes | None = None
    """JSON for the host."""


class AfterTurnRequest(Struct, frozen=True, kw_only=True):
    """What happened in a turn, after its messages were stored."""

    budget: int | None = None
    heartbeat: bool = False
    auto_compaction_summary: str | None = None


class MaintainOutcome(Struct, frozen=True, kw_only=True):
    """What maintenance changed in the host's transcript."""

    changed: bool = False
    bytes_freed: int = 0
    rewritten_entries: int = 0
    reason: str | None = None


class PreflightOutcome(Struct, frozen=True, kw_only=True):
    """Whether the next answer is going to fit."""

    fits: bool
    estimated_tokens: int
    action: Literal["none", "compact"]


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
