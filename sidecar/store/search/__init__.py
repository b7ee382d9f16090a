"""What can be looked for in a store, and what is found."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from sidecar.store.contract import SessionStore
from sidecar.store.records import SessionRecord
from sidecar.store.stored import SessionRef

SearchKind = Literal["words", "literal", "regex"]
MOST_S = 2.0
"""Seconds that a search takes at most."""
MOST_PATTERN = 1_000
"""Characters of a regular expression."""


class Searchable(NamedTuple):
    """What is searched of one message."""

    text: str
    """Visible text, tool names, arguments and results, one line each; text of our own left out."""
    tools: tuple[str, ...]
    """Names of the tools that are called or answered."""


Extract = Callable[[SessionRecord, bytes], Searchable]
"""Reads what is searched out of a message: its session, then its bytes. Called on any thread."""


def plain_text(_session: SessionRecord, body: bytes) -> Searchable:
    """What is searched of a message whose format nobody reads: all of it."""
    return Searchable(body.decode("utf-8", "replace"), ())


class SearchQuery(Struct, frozen=True, kw_only=True):
    """What to look for in one session, or in all that an agent may read."""

    text: str
    """What to look for; may be empty for a `literal` that is narrowed to a turn, a tool, roles or a time: all
    of these are then found."""
    kind: SearchKind = "words"
    """`words` ranks by stemmed words, CJK by pairs of characters; `literal` finds the text anywhere, both in
    NFKC and case folded; `regex` is RE2 over the text as written, `(?i)` in front for any case."""
    limit: int = 10
    """Most hits that are returned."""
    first: int = 1
    last: int | None = None
    """Positions to look at, both included; `None` for up to the newest. Of one session only."""
    roles: tuple[str, ...] = ()
    tool: str | None = None
    turn_id: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    newest_first: bool = False
    """For `literal` and `regex`: from the newest backwards, instead of in order; sessions in the same
    direction, by when they were made."""
    cursor: str | None = None
    """Where to go on, from `SearchResult.next_cursor`, with the same query otherwise."""
    meaning: bool = False
    """For `words`: what means the same counts too, where somebody in front of the store can tell."""
    agent_id: str | None = None
    """The agent that asks: it finds nothing in sessions of other agents. `None` for the host itself, which
    finds everything."""
    for_answer: bool = False
    """Asked for an answer that a model waits for: other searches are not waited for, but those of answers."""
    most_s: float = MOST_S
    """Seconds after which the search ends with what it has found, if that is less than `MOST_S`."""

    @property
    def is_narrowed(self) -> bool:
        """Whether anything is asked of messages beside their text."""
        by_time = self.since_ms is not None or self.until_ms is not None
        return by_time or bool(self.roles) or self.tool is not None or self.turn_id is not None


class SearchHit(NamedTuple):
    """One message that was found."""

    position: int
    score: float
    """Higher is better; 1.0 for `literal` and `regex`. Comparable within one search only."""


class SearchResult(NamedTuple):
    """What was found."""

    hits: list[SearchHit]
    """Best first for `words`, else in the order asked for."""
    complete: bool
    """False where the work was bounded: for `words` messages left unranked might be among the best, else
    `next_cursor` goes on where the work ended. Also where a long message was not looked at to its end."""
    next_cursor: str | None = None


class SessionsHit(NamedTuple):
    """One message that was found in one of many sessions."""

    ref: SessionRef
    """The session that it was stored in; where that one may not be read, a fork of it that may."""
    position: int
    score: float
    """As in `SearchHit`; comparable across the sessions."""


class SessionsResult(NamedTuple):
    """What was found in many sessions, as in `SearchResult`."""

    hits: list[SessionsHit]
    complete: bool
    next_cursor: str | None = None
    """Always `None` for `words`: ask again with a larger limit."""


class SearchState(NamedTuple):
    """How far the index has come."""

    waiting: int
    """Messages that are not indexed, about; searches look at them."""
    erased_since_ms: int | None = None
    """Since when parts of what was erased wait to be taken out of the index, which finds them no more."""


class SearchError(ValueError):
    """Raised when a query cannot be answered: a broken regular expression, a cursor no longer good."""


class SessionSearch(Protocol):
    """The searching side of a store. Finds what was acknowledged before the call, indexed yet or not."""

    async def search(self, ref: SessionRef, query: SearchQuery) -> SearchResult:
        """The messages of a session that match; none where there is no such session.

        Raises:
            SearchError: the query cannot be answered; the text says why.
            SessionMissing: the session is another agent's.
        """
        ...

    async def search_sessions(
        self, namespace: str, query: SearchQuery, *, without: Collection[SessionRef] = ()
    ) -> SessionsResult:
        """The messages that match in all sessions of a namespace, as far as `query.agent_id` may read them.

        An agent reads its own sessions, and those that belong to nobody. What a fork shares with its parent
        is found once. Sessions `without` are left out, and with them what others share with them.

        Raises:
            SearchError: the query cannot be answered, or asks for positions or a cursor of one session.
        """
        ...


class SearchableStore(SessionStore, SessionSearch, Protocol):
    """A store that can be searched."""
