"""What an engine is handed of a session for the length of a call."""

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
"""Why a spawned session is none any more."""


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


class View(Struct, frozen=True):
    """A range of budgets whose answers go on from each other; each has a cut of its own."""

    id: str
    budget: int
    """The budget that it was first planned for; budgets that are not far from it belong to it."""
    answered: bool
    """False where it has given no answer yet: then it is planned with all the room there is."""


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

    @property
    def view(self) -> View | None:
        """The view that the call is about; `None` where it is about no budget."""
        ...

    def calibrated(self, tokens: int) -> int:
        """What so many tokens of `host.tokens` count in a budget: entries come with that count."""
        ...

    async def state(self, name: str) -> bytes | None:
        """A value that `save_state` kept under this name for this engine.

        In a call about a view it is the view's, but for the engine's `shared_state`.
        """
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
