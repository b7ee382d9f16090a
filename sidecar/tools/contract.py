"""What a tool for the model is, what it is handed, and what it answers."""

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
        """Name of the argument at fault, empty where it is all of them."""


class ToolFailed(Exception):
    """Raised when a tool ran and cannot do what it was asked; the text tells the model what to do next."""


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
        """The summaries of these ids; what is not there is left out."""
        ...


class Ask(Protocol):
    """Asks a model on behalf of a tool."""

    async def __call__(self, messages: Sequence[tuple[str, str]], system_prompt: str, max_tokens: int) -> str:
        """The model's text for `(role, text)` messages; any exception says why there is none."""
        ...


class ToolModel(NamedTuple):
    """A model that a tool may ask."""

    ask: Ask
    tokens: Callable[[str], int]
    """How many a text takes."""


class Compacted(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a compaction did."""

    tokens_before: int
    tokens_after: int
    message_count: int
    """How many messages were stored then."""
    first_kept_position: int | None = None
    """The oldest message that was still sent in full, `None` where that is unknown."""
    timestamp: str


class PinShown(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something that stays in every answer."""

    pin_id: str
    message_id: str | None = None
    text: str | None = None
    note: str | None = None


class ContextStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the model is sent of a session."""

    engine: str
    message_count: int
    tokens: int | None
    """What the last answer took, `None` where there was none."""
    token_budget: int | None
    """What it might have taken."""
    pins: Sequence[PinShown]
    compacted: Compacted | None
    """What the last compaction did that was asked for, `None` where there was none."""


class ContextControl(Protocol):
    """The context of the session in which a tool is called."""

    async def status(self) -> ContextStatus:
        """What the model is sent, as of the last answer."""
        ...

    async def compact(self, keep: str | None) -> Compacted | str:
        """Make room, with a text that stays in every answer from now on; why there is none to make, if so."""
        ...


class ToolSession(NamedTuple):
    """The session that a tool reads, in whatever dialect it is."""

    head: SessionHead
    store: HistoryReader
    dialect: Dialect
    model: ToolModel | None = None
    """`None` where there is none; tools with `needs_model` are not offered then."""
    searching: SessionSearch | None = None
    """Finds by meaning too, where that is at hand; `None` leaves the search to the store."""
    context: ContextControl | None = None
    """`None` where the session is another one than that in which the tool is called."""

    async def read(self, first: int, last: int) -> Sequence[StoredMessage]:
        """The messages at these positions."""
        return await self.store.messages(self.head.ref, max(first, 1), min(last, self.head.message_count))

    async def find(self, query: SearchQuery) -> SearchResult:
        """The messages that match, or mean what is asked."""
        return await (self.searching or self.store).search(self.head.ref, query)


class ToolOutcome(Struct, frozen=True):
    """What a tool answers."""

    text: str
    """What the model is shown."""
    structured: bytes | None = None
    """The same for programs: a JSON object."""


class AgentTool(Protocol):
    """One tool. It reads the session that it is handed and nothing else, and changes no history."""

    name: ClassVar[str]
    description: ClassVar[str]
    """Written for the model."""
    input_schema: ClassVar[bytes]
    """JSON Schema of the arguments: an object."""

    async def call(self, session: ToolSession, arguments: bytes) -> ToolOutcome:
        """Run the tool; `arguments` is a JSON object.

        Raises:
            ArgumentError: the arguments do not fit the schema.
            ToolFailed: it cannot do what was asked.
        """
        ...
