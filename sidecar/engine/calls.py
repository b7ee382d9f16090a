"""What an engine is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from sidecar.engine.entry import Entry


Kind = Literal["system", "summary", "activityLog", "recent", "memory", "recall"]
"""What a part of the answer is for, as `composition` names it."""


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
    quotes: tuple[tuple[int, str], ...] = ()
    """Positions of the messages that the text quotes, each with the reason, for `context/explain`."""


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


class Overflow(Exception):
    """Raised when even the minimum exceeds the budget (error 1002)."""

    def __init__(self, required: int) -> None:
        super().__init__(f"the minimum needs {required} tokens")
        self.required = required
