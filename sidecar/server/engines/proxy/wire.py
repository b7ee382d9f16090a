"""What crosses the boundary to an engine's process: requests, answers, entries and errors."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Raw, Struct, structs

from sidecar.engine.calls import Kind, Made, Overflow
from sidecar.engine.entry import Entry
from sidecar.engine.host import HostCapabilityMissing
from sidecar.engine.session import SpawnedSession, SpawnEndReason, View
from sidecar.messages.contract import Dialect, Mark, Reading, Role
from sidecar.messages.fence import OPENING_BYTES
from sidecar.protocol import errors as codes
from sidecar.rpc.errors import RemoteError, RpcError
from sidecar.server.engines.answer_checks import NonsenseAnswer, described
from sidecar.server.failures import without_paths
from sidecar.store.stored import SessionHead, SummaryNode

EMPTY = Raw(b"{}")

KEPT_SESSIONS = 64
"""Sessions of which is known what the process has; the process keeps as many."""
Fingerprint = tuple[int, int]
KEPT_BYTES = 48 << 20
"""Bodies of all sessions that a process keeps, in bytes."""

_log = logging.getLogger(__name__)


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
    view: View | None = None
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
    shared_state: list[str] | None = None
    """Names of values that views share; `None` where the engine does not know of views."""
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


class Ours(Struct, array_like=True):
    """What of a message is ours: an engine's process cannot tell by itself."""

    mark: Mark | None
    texts: list[str]
    results: list[Mark | None]


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
    ours: Ours | None = None
    """Of the body, where anything is."""
    whole_ours: Ours | None = None
    """Of `whole`."""


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
    recall_share: float = 0.0
    """`recall.share` of the configuration."""


class Packer:
    """Remembers which bodies a process has been sent, session by session.

    It may be wrong: the process asks again, with `again`, for what it has not or has not any more.
    """

    def __init__(self) -> None:
        self._sent: OrderedDict[str, dict[str, Fingerprint]] = OrderedDict()

    def pack(self, session_id: str, entries: Iterable[Entry], *, again: bool = False) -> list[PackedEntry]:
        """The entries as they travel; `again` sends every body."""
        sent = self._of_session(session_id)
        if again:
            sent.clear()
        packed: list[PackedEntry] = []
        for entry in entries:
            print_ = (len(entry.raw), hash(entry.raw))
            known = sent.get(entry.message_id) == print_
            sent[entry.message_id] = print_
            packed.append(
                PackedEntry(
                    entry.message_id,
                    entry.place,
                    entry.turn,
                    entry.turn_id,
                    entry.role,
                    entry.timestamp_ms,
                    entry.heartbeat,
                    entry.tokens,
                    entry.position,
                    None if known else entry.raw,
                    entry.whole.raw if entry.whole else None,
                    _ours(entry),
                    _ours(entry.whole) if entry.whole else None,
                )
            )
        return packed

    def _of_session(self, session_id: str) -> dict[str, Fingerprint]:
        sent = self._sent.setdefault(session_id, {})
        self._sent.move_to_end(session_id)
        if len(self._sent) > KEPT_SESSIONS:
            self._sent.popitem(last=False)
        return sent


def _ours(entry: Entry) -> Ours | None:
    if OPENING_BYTES not in entry.raw:
        return None
    reading = entry.reading
    if not (reading.ours or reading.result_marks):
        return None
    return Ours(reading.mark, sorted(reading.ours), list(reading.result_marks))


class BodyMissing(Exception):
    """Raised when a body was not sent, and is not kept any more."""


class _Body(Struct):
    raw: bytes
    reading: Reading | None = None


class Unpacker:
    """Keeps the bodies that came, and what they say, so that neither travels nor is read twice."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._sessions: OrderedDict[str, dict[str, _Body]] = OrderedDict()
        self._bytes = 0

    def unpack(self, session_id: str, packed: Sequence[PackedEntry]) -> list[Entry]:
        """The entries.

        Raises:
            BodyMissing: one came without its body; ask for all of them again.
        """
        bodies = self._of_session(session_id)
        for item in packed:
            if item.body is not None:
                self._bytes += len(item.body)
                bodies[item.message_id] = _Body(item.body)
        try:
            entries = [self._entry(item, bodies[item.message_id]) for item in packed]
        except KeyError:
            raise BodyMissing from None
        self._trim()
        return entries

    def _entry(self, item: PackedEntry, body: _Body) -> Entry:
        if body.reading is None:
            body.reading = _read(self._dialect, body.raw, item.ours)
        entry = Entry(
            message_id=item.message_id,
            position=item.position,
            place=item.place,
            turn=item.turn,
            turn_id=item.turn_id,
            role=item.role,
            timestamp_ms=item.timestamp_ms,
            heartbeat=item.heartbeat,
            raw=body.raw,
            dialect=self._dialect,
            cost=lambda _: item.tokens,
            reading=body.reading,
            tokens=item.tokens,
        )
        if item.whole is not None:
            reading = _read(self._dialect, item.whole, item.whole_ours)
            entry.whole = entry.moved(item.place, raw=item.whole, reading=reading)
        return entry

    def _of_session(self, session_id: str) -> dict[str, _Body]:
        bodies = self._sessions.setdefault(session_id, {})
        self._sessions.move_to_end(session_id)
        if len(self._sessions) > KEPT_SESSIONS:
            self._drop_oldest()
        return bodies

    def _trim(self) -> None:
        while self._bytes > KEPT_BYTES and self._sessions:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, bodies = self._sessions.popitem(last=False)
        self._bytes = max(0, self._bytes - sum(len(body.raw) for body in bodies.values()))


def _read(dialect: Dialect, raw: bytes, ours: Ours | None) -> Reading:
    reading = dialect.read(raw)
    if ours is None:
        return reading
    return structs.replace(
        reading, mark=ours.mark, ours=frozenset(ours.texts), result_marks=tuple(ours.results)
    )


def to_wire_error(error: BaseException) -> RpcError:
    """The error that travels for what an engine raised."""
    match error:
        case HostCapabilityMissing(capability=capability):
            return RpcError(codes.HOST_CAPABILITY_MISSING, str(error), {"capability": capability})
        case Overflow(required=required):
            return RpcError(codes.CONTEXT_OVERFLOW, str(error), {"required": required})
        case RemoteError(code=codes.ENGINE_FAILED | codes.INTERNAL_ERROR):
            return RpcError(codes.ENGINE_FAILED, error.message)
        case RemoteError():
            # The sidecar itself has refused something: what it said goes back as it came.
            return error
        case NonsenseAnswer():
            return RpcError(codes.ENGINE_FAILED, str(error))
        case _:
            _log.error("the engine failed", exc_info=error)
            return RpcError(codes.ENGINE_FAILED, without_paths(described(error)))


def from_wire_error(error: RemoteError) -> BaseException | None:
    """The exception that an error of the process stands for, `None` where the engine has failed."""
    match error.code:
        case codes.HOST_CAPABILITY_MISSING:
            return HostCapabilityMissing(str(error.data.get("capability", "")))
        case codes.CONTEXT_OVERFLOW if isinstance(required := error.data.get("required"), int):
            return Overflow(required)
        case codes.STORE_UNAVAILABLE | codes.SESSION_NOT_FOUND:
            return RpcError(error.code, error.message, error.data)
        case _:
            return None
