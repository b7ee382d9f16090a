"""A session as an engine sees it for the duration of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from sidecar.engine.entry import Entry
    from sidecar.engine.guard.pinned import Pin
    from sidecar.engine.host import Report
    from sidecar.store.search import SearchQuery, SearchResult
    from sidecar.store.stored import SummaryNode


SpawnEndReason = Literal["deleted", "completed", "swept", "released", "rolledBack"]
"""Why a spawned session ended."""


class Tail(NamedTuple):
    """The newest part of a timeline."""

    entries: list[Entry]
    """The entries, oldest first."""
    whole: bool
    """True if the entries reach back to the start."""


class Timeline(Protocol):
    """The session from its first message to its newest, loaded on demand.

    It omits heartbeats made stale by a newer turn.
    """

    async def tail(self, tokens: int) -> Tail:
        """The newest entries, back to the start or until they exceed `tokens` tokens."""
        ...

    async def opener(self, turn: int) -> Entry | None:
        """The user message that opened a turn, or `None`."""
        ...

    async def system(self) -> list[Entry]:
        """The system messages of the whole timeline, in order."""
        ...

    async def resolve(self, message_id: str) -> str | None:
        """The current id of a message on the timeline; `None` if it is not there (any more).

        A message gets a new id when it is stored; this accepts its earlier id too.
        """
        ...

    async def before(self, message_id: str, limit: int, since: str | None = None) -> list[Entry]:
        """Up to `limit` entries before a message, oldest first, back to `since` (included) at most."""
        ...


class History(Protocol):
    """The stored messages of a session, whether or not the host's list still has them."""

    @property
    def version(self) -> str:
        """Differs whenever stored messages change other than by appending."""
        ...

    @property
    def count(self) -> int:
        """Number of stored messages; also the position of the newest."""
        ...

    async def read(self, first: int, last: int) -> list[Entry]:
        """The entries at positions `first` to `last`, both included; missing ones are skipped."""
        ...

    async def search(self, query: SearchQuery) -> SearchResult:
        """The stored messages of the session that match.

        Raises:
            SearchError: the query cannot be answered.
        """
        ...


class View(Struct, frozen=True):
    """A range of nearby budgets whose answers extend each other; each view has its own cut."""

    id: str
    budget: int
    """The budget that it was first planned for; nearby budgets belong to it."""
    answered: bool
    """False until its first answer, which may use the whole budget."""


class SpawnedSession(Struct, frozen=True, kw_only=True):
    """A session that another session has spawned or is about to spawn."""

    preparation_id: str
    parent_session_key: str
    parent_session_id: str | None
    child_session_key: str
    child_session_id: str | None
    """`None` until the child has sent its first request."""
    context_mode: Literal["isolated", "fork"]
    prepared_ms: int
    expires_ms: int | None
    """When the preparation expires, in milliseconds since 1970; `None` if it does not, or once the child has
    stored something."""


class Session(Protocol):
    """One session, passed to an engine for the duration of a call."""

    @property
    def session_id(self) -> str:
        """The host's key for the session."""
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

    @property
    def view(self) -> View | None:
        """The view that the call is about; `None` if the call has no budget."""
        ...

    def calibrated(self, tokens: int) -> int:
        """Convert a count by `host.tokens` to budget tokens; counts of entries are already converted."""
        ...

    async def state(self, name: str) -> bytes | None:
        """The value that this engine saved under this name by `save_state`, or `None`.

        In a call about a view it is the view's value, except for names in `shared_state`.
        """
        ...

    async def save_state(self, name: str, value: bytes | None) -> None:
        """Store a small value durably; `None` removes it."""
        ...

    async def summaries(self) -> list[SummaryNode]:
        """The session's summaries by first position."""
        ...

    async def summary_nodes(self, node_ids: Sequence[str]) -> list[SummaryNode]:
        """The summaries with these ids; missing ones are skipped."""
        ...

    async def add_summary(self, node: SummaryNode, replaces: Sequence[str] = ()) -> bool:
        """Store a summary in place of others. Returns false if the history changed since the call began."""
        ...

    async def spawn(self) -> SpawnedSession | None:
        """How another session spawned this one; `None` if none did, or once it has ended as a child."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text as the budget counts them, calibrated by the usage that the provider reported."""
        ...

    async def pins(self) -> list[Pin]:
        """The pins; the guard keeps them in every answer, whatever the engine chooses."""
        ...

    def report_to(self, report: Report) -> None:
        """Send `progress` to this callback from now on."""
        ...

    def progress(self, message: str, percentage: int | None = None) -> None:
        """Report progress to the host, if it requested progress."""
        ...
