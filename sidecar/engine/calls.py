"""Requests to engines and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from sidecar.engine.entry import Entry


Kind = Literal["system", "summary", "activityLog", "recent", "memory", "recall"]
"""Kind of content in an answer, as named in `composition`."""


class IncomingMessage(Struct, frozen=True, kw_only=True):
    """A message received from the host."""

    raw: bytes
    message_id: str | None = None
    turn_id: str | None = None
    timestamp_ms: int | None = None
    heartbeat: bool = False


class IngestOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of ingesting a message."""

    ingested: bool
    message_id: str = ""
    turn_id: str = ""
    display_message: bytes | None = None
    """The message as users should see it, if that differs."""
    reason: str | None = None


class AssembleRequest(Struct, frozen=True, kw_only=True):
    """The host's request for the model's context."""

    budget: int
    """Tokens for the whole answer; the tokens of the prompt are already subtracted."""
    prompt: str = ""
    model: str | None = None
    available_tools: tuple[str, ...] = ()
    citations_mode: str | None = None


class Kept(Struct, frozen=True):
    """A message of the session, included in the answer unchanged."""

    entry: Entry
    kind: Kind = "recent"


class Made(Struct, frozen=True, kw_only=True):
    """A text by the engine, included in the answer as a marked message."""

    role: Literal["user", "assistant"]
    kind: Kind
    ref: str
    """Identifies the source of the text, such as a summary's node id."""
    text: str
    timestamp_ms: int
    covers: tuple[int, int] | None = None
    """First and last position that the text represents."""
    lasting: bool = False
    """True if recalled text or memory keeps its place in later answers."""
    quotes: tuple[tuple[int, str], ...] = ()
    """Positions of the messages that the text quotes, each with the reason, for `context/explain`."""


class Assembly(Struct, frozen=True, kw_only=True):
    """An engine's answer to `assemble`."""

    items: Sequence[Kept | Made]
    system_prompt_addition: str | None = None
    user_message_append: str | None = None
    as_came: bool = False
    """Return the host's list unchanged; honoured for `legacy` only."""


class CompactRequest(Struct, frozen=True, kw_only=True):
    """The host's request to compact."""

    budget: int
    force: bool = False
    force_reason: str | None = None
    current_token_count: int | None = None
    target: Literal["budget", "threshold"] = "threshold"
    custom_instructions: str | None = None


class CompactOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a compaction; if there was nothing to do, `compacted` is false and `reason` says why."""

    ok: bool = True
    compacted: bool
    reason: str | None = None
    summary: str | None = None
    first_kept_message_id: str | None = None
    tokens_before: int = 0
    tokens_after: int | None = None
    details: bytes | None = None
    """Further details for the host, as JSON."""


class AfterTurnRequest(Struct, frozen=True, kw_only=True):
    """Facts about a finished turn whose messages are stored."""

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
    """Whether the next answer will fit."""

    fits: bool
    estimated_tokens: int
    action: Literal["none", "compact"]


class Overflow(Exception):
    """Raised when even the minimum exceeds the budget (error 1002); `required` is in tokens."""

    def __init__(self, required: int) -> None:
        super().__init__(f"the minimum needs {required} tokens")
        self.required = required
