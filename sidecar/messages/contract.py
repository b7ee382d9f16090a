"""What the sidecar reads from a raw message, and the interface of a dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self

from msgspec import Struct

if TYPE_CHECKING:
    from sidecar.messages.marks import Marks

Role = Literal["system", "user", "assistant", "tool", "other"]
"""Dialect-neutral roles. `developer` maps to `system`, an unknown role to `other`."""

MarkKind = Literal["summary", "activityLog", "memory", "recall", "stub", "noResult", "ack", "note"]


class MessageError(ValueError):
    """Raised when a raw message is not a JSON object, or has neither `role` nor `type`."""

    def __init__(self, reason: str, pointer: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.pointer = pointer
        """JSON Pointer within the message; empty for the message itself."""


class Mark(NamedTuple):
    """Identifies a synthetic text, as opposed to one that the host wrote."""

    kind: MarkKind
    ref: str
    """What the text represents: a summary's node id, or the `messageId` that a stub replaces."""


class ToolCall(NamedTuple):
    """One call of a tool by the model."""

    id: str
    name: str
    arguments: str
    """The arguments as JSON text, exactly as in the message."""
    wire_type: str = ""
    """The type of the call, if the dialect has several, such as `custom_tool_call`."""


class ToolResult(NamedTuple):
    """One result of a tool call."""

    call_id: str
    name: str
    text: str
    is_error: bool


class Media(NamedTuple):
    """An image, sound or file inside a message."""

    kind: Literal["image", "audio", "video", "file"]
    size: int
    """Bytes of an inline payload after base64 decoding; 0 for a reference."""


class Usage(NamedTuple):
    """Token counts that the provider reported with an assistant message."""

    input_tokens: int
    """Tokens of the whole prompt, including cache reads and cache writes."""
    output_tokens: int
    read_tokens: int = 0
    """Prompt tokens read from the cache."""
    written_tokens: int = 0
    """Prompt tokens written to the cache, if the provider charges for that."""


class Reading(Struct, frozen=True, kw_only=True):
    """One parsed message in dialect-neutral form."""

    role: Role
    wire_role: str
    """The `role` as spelled in the message, or the `type` if there is no role."""
    text: str = ""
    """The visible text, including fences of synthetic text; parts are joined by line breaks.

    The text of tool results is in `results` only.
    """
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    media: tuple[Media, ...] = ()
    reasoning: str = ""
    """Reasoning or thinking text that is sent back to the provider."""
    carries_reasoning: bool = False
    """True if the message contains reasoning or signed thinking that must stay with its call."""
    usage: Usage | None = None
    model: str | None = None
    sender: str = ""
    """Which of several users wrote it, if the message says so; shortened to fit on a line with a role."""
    timestamp_ms: int | None = None
    inner_id: str | None = None
    """An id inside the message that identifies it (protocol.md, Identity, rule 2)."""
    mark: Mark | None = None
    """Set if the whole message is ours: written by a sidecar and returned by a host."""
    ours: frozenset[str] = frozenset()
    """The parts of `text` that are ours, verbatim, including their fences."""
    result_marks: tuple[Mark | None, ...] = ()
    """For each result, the mark of our text that replaces it, or `None`; empty if none is replaced."""

    @property
    def said(self) -> str:
        """`text` without the parts that are ours."""
        if not self.ours:
            return self.text
        from sidecar.messages.fence import strip

        return strip(self.text, self.ours)

    @property
    def result_texts(self) -> list[str]:
        """The text of each tool result; empty for a result replaced by our text."""
        if not self.result_marks:
            return [result.text for result in self.results]
        pairs = zip(self.results, self.result_marks, strict=True)
        return ["" if mark else result.text for result, mark in pairs]

    @property
    def opens_turn(self) -> bool:
        """True for a user message without tool results that is not synthetic."""
        return self.role == "user" and not self.results and self.mark is None


class Glance(NamedTuple):
    """The few facts that acknowledging a message needs; cheaper than a `Reading`.

    Does not detect our own text: callers that may encounter it search for `fence.OPENING_BYTES` first.
    """

    role: Role
    opens_turn: bool
    inner_id: str | None
    timestamp_ms: int | None


class IdentityKeys(NamedTuple):
    """Signed 64-bit fingerprints for rules 3 to 5 of Identity; 0 if a rule does not apply."""

    call: int
    """Rule 3: normalised tool-call ids and their side (call or result)."""
    stamp: int
    """Rule 4: role, timestamp and folded text."""
    text: int
    """Rule 5: role and folded text, including call names and arguments, results and media."""


class Problem(Struct, frozen=True):
    """One violation of the provider's rules in a list of messages."""

    index: int
    rule: str
    """A short stable name, such as `result-without-call`."""
    detail: str


class Send(Struct, frozen=True):
    """Send the message at `index` of the given list."""

    index: int


class Missing(Struct, frozen=True):
    """Send a synthetic result for this call, which was interrupted before a result was recorded."""

    call: ToolCall
    index: int
    """Index of the message with the call."""


class Leave(Struct, frozen=True):
    """Leave out the message at `index`."""

    index: int
    rule: str


Placement = Send | Missing | Leave


class Dialect(Protocol):
    """One wire format of messages: reads, writes and validates it."""

    name: str
    keeps_lone_reasoning: bool
    """True if reasoning may be a separate message, which belongs to the messages after it."""

    def glance(self, raw: bytes) -> Glance:
        """The role and ids of one raw message.

        Raises:
            MessageError: the message is not an object, or has neither `role` nor `type`.
        """
        ...

    def marked(self, marks: Marks, *, transcript: bool = False) -> Self:
        """The same dialect bound to one family of sessions, so that `read` recognises our own text.

        `transcript` is for complete host lists, in which first-edition marks count too.
        """
        ...

    def wrap(self, mark: Mark, text: str) -> str:
        """`text` in a fence that `read` will recognise; requires a dialect from `marked`."""
        ...

    def read(self, raw: bytes) -> Reading:
        """Parse one raw message; a dialect from `marked` also recognises our own text in it.

        Members of an unexpected type inside the message are ignored, never an error.

        Raises:
            MessageError: as for `glance`.
        """
        ...

    def write_text(self, role: Literal["user", "assistant"], text: str, timestamp_ms: int) -> bytes:
        """A new message of this dialect with `text` as its content."""
        ...

    def write_result(self, call: ToolCall, text: str, timestamp_ms: int) -> bytes:
        """A new message that answers `call` with `text`."""
        ...

    def replace_results(self, raw: bytes, texts: dict[str, str]) -> bytes:
        """The message with new texts for the results of the given call ids; the rest stays."""
        ...

    def replace_images(self, raw: bytes, text: str) -> bytes:
        """The message with each image in its content replaced by `text`; images of results stay."""
        ...

    def change_texts(self, raw: bytes, change: Callable[[list[str]], Sequence[str]]) -> bytes:
        """The message with its visible texts transformed by `change`; every other byte stays.

        `change` receives the text of each part, except results and reasoning, and returns as many.
        """
        ...

    def arrange(self, readings: Sequence[Reading], *, cut: bool = False) -> list[Placement]:
        """The order in which to send a chosen list so that the provider accepts it.

        Every message is named once, by `Send` or `Leave`. Calls that are open at the very end stay open. An
        earlier interrupted call gets a `Missing` for each result that was never recorded. A result whose
        call is not in the list is left out, and a displaced result moves up to its call. Arranging an
        arranged list changes nothing. `cut` means that the list lacks the start of the history; it then must
        not start in the middle of a turn, whatever the provider.
        """
        ...

    def check(self, readings: Sequence[Reading]) -> list[Problem]:
        """Everything that the provider would refuse, judged strictly and independently of `arrange`."""
        ...
