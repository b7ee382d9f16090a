"""The interface of tools for the model: the session they read, and their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, Protocol

from msgspec import Struct

from sidecar.messages.contract import Dialect
from sidecar.store.search import SearchQuery, SearchResult, SessionSearch
from sidecar.store.stored import SessionHead, SessionRef, StoredMessage, SummaryNode


class ArgumentError(ValueError):
    """Raised when arguments do not fit the tool's schema (error -32602)."""

    def __init__(self, reason: str, argument: str = "") -> None:
        super().__init__(f"{argument}: {reason}" if argument else reason)
        self.argument = argument
        """Name of the invalid argument; empty for the arguments as a whole."""


class ToolFailed(Exception):
    """Raised when a tool cannot do what was requested; the text tells the model what to do next."""


class HistoryReader(Protocol):
    """The part of a store that tools read."""

    async def messages(self, ref: SessionRef, first: int, last: int) -> Sequence[StoredMessage]:
        """The messages at positions `first` to `last`."""
        ...

    async def turn_start(self, ref: SessionRef, turn: int) -> int | None:
        """The position of the first message of a turn."""
        ...

    async def message(self, ref: SessionRef, message_id: str) -> StoredMessage | None:
        """One message by its id."""
        ...

    async def search(self, ref: SessionRef, query: SearchQuery) -> SearchResult:
        """The messages of a session that match."""
        ...

    async def summaries(self, ref: SessionRef, *, texts: bool = True) -> Sequence[SummaryNode]:
        """The session's summaries by first position, then depth; without `texts` each text is empty."""
        ...

    async def summary_nodes(self, ref: SessionRef, node_ids: Sequence[str]) -> Sequence[SummaryNode]:
        """The summaries with these ids; unknown ids are left out."""
        ...


class Ask(Protocol):
    """Calls a model on behalf of a tool."""

    async def __call__(self, messages: Sequence[tuple[str, str]], system_prompt: str, max_tokens: int) -> str:
        """The model's text for `(role, text)` messages; any exception says why the call failed."""
        ...


class ToolModel(NamedTuple):
    """A model that a tool may call."""

    ask: Ask
    tokens: Callable[[str], int]
    """Counts the tokens of a text."""


class Compacted(Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a compaction."""

    tokens_before: int
    tokens_after: int
    message_count: int
    """Number of messages stored at that time."""
    first_kept_position: int | None = None
    """Position of the oldest message that was still sent in full; `None` if unknown."""
    timestamp: str


class PinShown(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A pin, which stays in every answer."""

    pin_id: str
    message_id: str | None = None
    text: str | None = None
    note: str | None = None


class ContextStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """The state of a session's context."""

    engine: str
    message_count: int
    tokens: int | None
    """Tokens of the last answer; `None` if there was none."""
    token_budget: int | None
    """The budget of the last answer."""
    pins: Sequence[PinShown]
    compacted: Compacted | None
    """The last requested compaction; `None` if there was none."""


class ContextControl(Protocol):
    """The context of the session in which a tool is called."""

    async def status(self) -> ContextStatus:
        """The state of the context as of the last answer."""
        ...

    async def compact(self, keep: str | None) -> Compacted | str:
        """Compact, and keep a text in every answer from now on; returns why nothing was compacted, if so."""
        ...


class ToolSession(NamedTuple):
    """The session that a tool reads, in any dialect."""

    head: SessionHead
    store: HistoryReader
    dialect: Dialect
    model: ToolModel | None = None
    """`None` if the host offers no model; tools with `needs_model` are then not offered."""
    searching: SessionSearch | None = None
    """A search that may also find by meaning; `None` leaves the search to the store."""
    context: ContextControl | None = None
    """`None` if the tool is called from another session."""

    async def read(self, first: int, last: int) -> Sequence[StoredMessage]:
        """The messages at these positions."""
        return await self.store.messages(self.head.ref, max(first, 1), min(last, self.head.message_count))

    async def find(self, query: SearchQuery) -> SearchResult:
        """The messages that match the query, by words or by meaning."""
        return await (self.searching or self.store).search(self.head.ref, query)


class ToolOutcome(Struct, frozen=True):
    """The result of a tool."""

    text: str
    """The text for the model."""
    structured: bytes | None = None
    """The same for programs: a JSON object."""


class AgentTool(Protocol):
    """One tool. It reads only the session that it is given, and never changes its history."""

    name: ClassVar[str]
    description: ClassVar[str]
    """Written for the model."""
    input_schema: ClassVar[bytes]
    """JSON Schema of the arguments: an object."""

    async def call(self, session: ToolSession, arguments: bytes) -> ToolOutcome:
        """Run the tool; `arguments` is a JSON object.

        Raises:
            ArgumentError: the arguments do not match the schema.
            ToolFailed: the tool cannot do what was requested.
        """
        ...
