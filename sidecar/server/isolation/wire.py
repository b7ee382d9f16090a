"""What a sidecar and the process of one of its engines tell each other.

Both ends come from the same installation, so that this needs no versions: requests carry the engine
contract's own types. Bodies of messages travel as base64, since hosts may have cut a surrogate pair in two.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Raw, Struct

from sidecar.engine.calls import Kind, Made
from sidecar.engine.session import SpawnedSession, SpawnEndReason
from sidecar.messages.contract import Role
from sidecar.store.stored import SessionHead, SummaryNode

EMPTY = Raw(b"{}")


class Wire(Struct, rename="camel", omit_defaults=True):
    """Base of what travels."""


class SessionFacts(Wire):
    """What an engine may know of its session without asking."""

    handle: int
    """Names the session for as long as the call lasts."""
    session_id: str
    agent_id: str | None = None
    history_version: str = ""
    history_count: int = 0
    factor: float = 1.0
    """What counted tokens are multiplied by."""
    method: str = ""
    """The host's request for which the engine is asked, for the log."""
    request_id: str | int | None = None


class EngineCall(Wire):
    """Params of the requests that call a member of the engine."""

    session: SessionFacts
    request: Raw = EMPTY
    """The request of the contract, or an object with `budget` for `maintain`."""


class MaintainRequest(Wire):
    """What `maintain` is given."""

    budget: int | None = None


class PrepareSpawnRequest(Wire):
    """What `prepare_spawn` is given, beside the session."""

    spawn: SpawnedSession
    parent: bool


class SpawnEndedRequest(Wire):
    """What `spawn_ended` is given; it has no session."""

    spawn: SpawnedSession
    reason: SpawnEndReason


class Spawned(Wire):
    """How a session was spawned, if it was."""

    spawn: SpawnedSession | None = None


class Pinned(Wire):
    """One pin: a text, or so many of the entries that come with it."""

    pin_id: str
    entries: int = 0
    made: Made | None = None


class Pins(Wire):
    """What is pinned in a session."""

    pins: list[Pinned]


class Item(Wire):
    """One item of an assembly: a message by its id, or a text."""

    id: str | None = None
    kind: Kind = "recent"
    made: Made | None = None


class AssemblyAnswer(Wire):
    """What the engine answered to `assemble`."""

    items: list[Item]
    system_prompt_addition: str | None = None
    user_message_append: str | None = None


class OwnTool(Wire):
    """A tool of the engine's own, which runs in its process."""

    name: str
    description: str
    input_schema: str
    needs_model: bool = False


class Description(Wire):
    """What the engine in the process is, beyond what the handshake says."""

    own: list[str]
    """Optional members of its own, in Python's spelling."""
    stores: bool
    """True where messages need not be shown to it when they come in."""
    tools: dict[str, str]
    own_tools: list[OwnTool]
    buffers: bool = False
    """True where its turns are buffered for a back end."""
    shortens: bool = False
    """True where it shortens old tool results itself."""
    payload_tokens: int = 0
    grant_tokens: int = 0


class ToolFacts(Wire):
    """The session that a tool reads, for as long as a call lasts."""

    handle: int
    head: SessionHead
    has_model: bool = False


class ToolCall(Wire):
    """Params of the request that runs a tool."""

    session: ToolFacts
    name: str
    arguments: Raw = EMPTY


class ToolAnswer(Wire):
    """What a tool answered, or how it said that it cannot."""

    text: str
    structured: bytes | None = None
    failed: bool = False
    argument: str | None = None
    """Set where the arguments do not fit: the one at fault, empty where it is all of them."""


class ToolAsk(Wire):
    """Params of the requests by which a tool reads; each uses the members that it needs."""

    handle: int
    first: int = 0
    last: int = 0
    message_id: str = ""
    turn: int = 0
    texts: bool = True
    node_ids: list[str] = []


class Ask(Wire):
    """Params of the requests by which an engine reads its session; each uses the members that it needs."""

    handle: int
    tokens: int = 0
    turn: int = 0
    message_id: str = ""
    limit: int = 0
    since: str | None = None
    first: int = 0
    last: int = 0
    name: str = ""
    value: bytes | None = None
    node: SummaryNode | None = None
    replaces: list[str] = []
    again: bool = False
    """True where bodies are to be sent that were sent before: the process has let go of them."""


class PackedEntry(Struct, array_like=True):
    """One entry of a timeline."""

    message_id: str
    place: int
    turn: int
    turn_id: str
    role: Role
    timestamp_ms: int
    heartbeat: bool
    tokens: int
    position: int | None
    body: bytes | None
    """`None` where it was sent before, and has not changed since."""
    whole: bytes | None = None
    """The message itself where the entry is a stand-in for it."""


class Entries(Wire):
    """A piece of a timeline."""

    entries: list[PackedEntry]
    whole: bool = False


class Text(Wire):
    """A text or nothing."""

    text: str | None = None


class Value(Wire):
    """Bytes or nothing."""

    value: bytes | None = None


class Verdict(Wire):
    """Yes or no."""

    ok: bool


class Completion(Wire):
    """Params of the request for a text of the host's model."""

    handle: int
    purpose: str
    messages: list[tuple[str, str]]
    system_prompt: str | None = None
    max_tokens: int | None = None


class HostRequest(Wire):
    """Params of requests that carry a type of the contract to the host's side."""

    handle: int
    request: Raw


class Report(Wire):
    """Params of the notifications about progress, or for the log."""

    message: str
    handle: int = 0
    percentage: int | None = None
    level: str = "info"


class Compacted(Wire):
    """The engine has compacted a session without being asked."""

    handle: int


class Nothing(Wire):
    """Params or result without members."""


class Summaries(Wire):
    """Nodes of a session's summaries."""

    nodes: list[SummaryNode]


class EngineSettings(Wire):
    """The `config` of the handshake with an engine's process."""

    settings: dict[str, Any] = {}
    """`plugins.entries.<id>.config`, not validated yet."""
    counter: Literal["auto", "o200k", "cl100k", "estimate"] = "auto"
