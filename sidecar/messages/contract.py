"""What the sidecar reads from a raw message, and what a dialect must offer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self

from msgspec import Struct

if TYPE_CHECKING:
    from sidecar.messages.marks import Marks

Role = Literal["system", "user", "assistant", "tool", "other"]
"""Neutral roles. `developer` reads as system, an unknown role as other."""

MarkKind = Literal["summary", "activityLog", "memory", "recall", "stub", "noResult", "ack", "note"]


class MessageError(ValueError):
    """Raised when a raw message cannot be read: no JSON object, or neither `role` nor `type`."""

    def __init__(self, reason: str, pointer: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.pointer = pointer
        """JSON Pointer inside the message, empty for the message itself."""


class Mark(NamedTuple):
    """What tells a synthetic message from one that the host wrote."""

    kind: MarkKind
    ref: str
    """Whatever it stands for: a summary's node id, or the `messageId` that a stub replaces."""


class ToolCall(NamedTuple):
    """One call of a tool by the model."""

    id: str
    name: str
    arguments: str
    """The arguments as JSON text, as the message carries them."""
    wire_type: str = ""
    """The type of the call where the dialect has several, such as `custom_tool_call`."""


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
    """Bytes of payload where it is inline (after base64 decoding), 0 where it is a reference."""


class Usage(NamedTuple):
    """Token numbers that the provider reported with an assistant message."""

    input_tokens: int
    """The whole prompt, with what the cache served and what was written to it."""
    output_tokens: int
    read_tokens: int = 0
    """Those of the prompt that were read from the cache."""
    written_tokens: int = 0
    """Those that were written to it, where the provider charges for that."""


class Reading(Struct, frozen=True, kw_only=True):
    """What one raw message says, in neutral terms."""

    role: Role
    wire_role: str
    """The `role`, or the `type` where there is no role, as spelled in the message."""
    text: str = ""
    """What a reader sees, fences of synthetic text included; parts are joined by line breaks.

    The texts of tool results are in `results` and not repeated here.
    """
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    media: tuple[Media, ...] = ()
    reasoning: str = ""
    """Reasoning or thinking text that is sent back to the provider."""
    carries_reasoning: bool = False
    """True where the message holds reasoning or signed thinking that must stay with its call."""
    usage: Usage | None = None
    model: str | None = None
    sender: str = ""
    """Who of several users wrote it, where the message says so; cut to what stands on a line with a role."""
    timestamp_ms: int | None = None
    inner_id: str | None = None
    """An id inside the message that identifies it (protocol.md, Identity, rule 2)."""
    mark: Mark | None = None
    """Set where the whole message is ours: made by a sidecar, handed back by a host."""
    ours: frozenset[str] = frozenset()
    """The parts of `text` that are ours, each as it stands in it, fence included."""
    result_marks: tuple[Mark | None, ...] = ()
    """For each result the mark of the text of ours in its place; empty where there is none."""

    @property
    def said(self) -> str:
        """`text` without what in it is ours."""
        if not self.ours:
            return self.text
        from sidecar.messages.fence import strip

        return strip(self.text, self.ours)

    @property
    def result_texts(self) -> list[str]:
        """What tools have said, result by result; empty where a text of ours stands in for it."""
        if not self.result_marks:
            return [result.text for result in self.results]
        pairs = zip(self.results, self.result_marks, strict=True)
        return ["" if mark else result.text for result, mark in pairs]

    @property
    def opens_turn(self) -> bool:
        """True for a user message that carries no tool result and is not synthetic."""
        return self.role == "user" and not self.results and self.mark is None


class Glance(NamedTuple):
    """The little that the acknowledgement path needs; cheaper than a `Reading`.

    Text of our own is not looked for: a caller that can meet it searches for `fence.OPENING_BYTES` first.
    """

    role: Role
    opens_turn: bool
    inner_id: str | None
    timestamp_ms: int | None


class IdentityKeys(NamedTuple):
    """Fingerprints for rules 3 to 5 of Identity; 0 where a rule does not apply. Signed 64-bit."""

    call: int
    """Rule 3: normalised tool-call ids with the side (call or result)."""
    stamp: int
    """Rule 4: role, time stamp and folded text."""
    text: int
    """Rule 5: role and folded text (call names and arguments, results, media included)."""


class Problem(Struct, frozen=True):
    """One way in which a message list breaks the rules of its provider."""

    index: int
    rule: str
    """A short stable name, such as `result-without-call`."""
    detail: str


class Send(Struct, frozen=True):
    """Send the message at `index` of the list that was given."""

    index: int


class Missing(Struct, frozen=True):
    """Send a synthetic result for this call: it was interrupted, and none was recorded."""

    call: ToolCall
    index: int
    """The message that holds the call."""


class Leave(Struct, frozen=True):
    """Leave the message at `index` out."""

    index: int
    rule: str


Placement = Send | Missing | Leave


class Dialect(Protocol):
    """One wire format of messages: how to read it, write in it, and judge it."""

    name: str
    keeps_lone_reasoning: bool
    """True where reasoning may be a message of its own, which belongs to those behind it."""

    def glance(self, raw: bytes) -> Glance:
        """The role and ids of one raw message.

        Raises:
            MessageError: the message is no object, or has neither `role` nor `type`.
        """
        ...

    def marked(self, marks: Marks, *, transcript: bool = False) -> Self:
        """The same dialect for the messages of one family of sessions: what it reads tells what is ours.

        `transcript` is for whole lists of a host, in which marks of the first edition count too.
        """
        ...

    def wrap(self, mark: Mark, text: str) -> str:
        """`text` in a fence that `read` is going to know again; for a dialect that is `marked`."""
        ...

    def read(self, raw: bytes) -> Reading:
        """Everything the sidecar understands of one raw message; what is ours in it, if it is `marked`.

        Members of an unexpected type inside the message are passed over, never an error.

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
        """The message with the text of the results for the given call ids replaced; the rest as it was."""
        ...

    def replace_images(self, raw: bytes, text: str) -> bytes:
        """The message with each image in its content replaced by `text`; those of results stay."""
        ...

    def change_texts(self, raw: bytes, change: Callable[[list[str]], Sequence[str]]) -> bytes:
        """The message with its visible texts as `change` gives them back; every other byte stays.

        `change` gets the text of each part, results and reasoning not among them, and gives as many back.
        """
        ...

    def arrange(self, readings: Sequence[Reading], *, cut: bool = False) -> list[Placement]:
        """The order in which to send a chosen list so that the provider accepts it.

        Every message is named once, by `Send` or `Leave`. Calls that are open at the very end stay open;
        an interrupted call before it gets a `Missing` for each result that was never recorded; a result
        whose call is not in the list is left out; a displaced result moves up to its call. Arranging an
        arranged list changes nothing. With `cut` the beginning of the history is not in the list, which
        then must not start in the middle of a turn, whatever the provider.
        """
        ...

    def check(self, readings: Sequence[Reading]) -> list[Problem]:
        """What the provider would refuse, strictly; written independently of `arrange`."""
        ...
