"""Building blocks that the types of several method areas share."""

from typing import Annotated, ClassVar, Literal, get_args

from msgspec import Meta, Raw, Struct

ABSENT = Raw()
"""Default of an optional raw member. To omit the member, leave it unset or pass this very object."""

MAX_SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader represents exactly."""

JsonObject = Annotated[Raw, Meta(extra_json_schema={"type": "object"})]
"""The bytes of a JSON object, not decoded. Empty bytes and `null` both mean absent."""

JsonValue = Raw
"""The bytes of any JSON value, not decoded. Empty bytes and `null` both mean absent."""

RawMessage = Annotated[
    Raw,
    Meta(
        title="Message",
        description="One message in the dialect of the connection; has `role` or `type`. "
        "The server reads what it needs and hands the whole object back byte for byte.",
        extra_json_schema={"type": "object"},
    ),
]
"""The bytes of one message in the connection's dialect, passed through byte for byte."""

SessionId = Annotated[
    str,
    Meta(
        title="SessionId",
        description="Name of a session as the host spells it: a key, never a path; "
        "1 to 1024 code points, no NUL.",
        min_length=1,
        max_length=1024,
        pattern="^[^\\0]*$",
    ),
]
"""Name of a session as the host spells it: a key, never a path."""

SessionKey = Annotated[
    str, Meta(title="SessionKey", description="Alias of a session.", min_length=1, max_length=1024)
]
"""Alias of a session."""

AgentId = Annotated[
    str,
    Meta(
        title="AgentId", description="Name of an agent, which owns sessions.", min_length=1, max_length=1024
    ),
]
"""Name of an agent, which owns sessions."""

MessageId = Annotated[
    str, Meta(title="MessageId", description="Id of a message within its session.", min_length=1)
]
"""Id of a message within its session."""

TurnId = Annotated[str, Meta(title="TurnId", description="Name of a turn within its session.", min_length=1)]
"""Name of a turn within its session."""

ResultId = Annotated[
    str, Meta(title="ResultId", description="Id of an assembled answer, unique in the store.", min_length=1)
]
"""Id of an assembled answer, unique in the store."""

EngineId = Annotated[
    str, Meta(title="EngineId", description="Id by which an engine is selected.", min_length=1)
]
"""Id by which an engine is selected."""

Name = Annotated[str, Meta(min_length=1, max_length=1024)]
"""A key that is not empty, at most 1024 code points."""

Id = Annotated[str, Meta(min_length=1)]
"""An identifier that is not empty."""

Count = Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]
"""A number of things: zero or more."""

PositiveInt = Annotated[int, Meta(ge=1, le=MAX_SAFE_INTEGER)]
"""A number that must be at least 1."""

# These two have no title: go-jsonschema and quicktype lose the details of a named time or a named union.
Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""RFC 3339 in UTC, such as `2024-01-15T10:30:00.000Z`."""

RequestId = Annotated[
    int | str,
    Meta(title="RequestId", description="Chosen by the sender; unique among its requests in flight."),
]
"""Id of a JSON-RPC request."""

ProgressToken = int | str
"""Token of work-done progress, chosen by the side that asks for progress."""


def known_values(title: str, description: str, *values: str | int) -> Meta:
    """Make an annotated `str` or `int` an open enumeration: these values are known, others may appear."""
    return Meta(title=title, description=description, extra_json_schema={"x-known-values": list(values)})


NULL_HAS_MEANING = Meta(extra_json_schema={"x-null": True})
"""Marks the few members where `null` has a meaning; elsewhere `null` is read as absent and never written."""


MessageFormat = Literal["openai", "openai-responses", "anthropic", "openclaw"]
"""Dialect of messages: chat completions, Responses items, Anthropic messages, pi AgentMessage."""

_MESSAGE_FORMAT = known_values(
    "MessageFormat",
    "Dialect of messages: chat completions, Responses items, Anthropic messages, pi AgentMessage.",
    *get_args(MessageFormat),
)

AnyMessageFormat = Annotated[str, _MESSAGE_FORMAT]
"""Dialect named by a server; a newer server may know more."""

SpokenMessageFormat = Annotated[MessageFormat, _MESSAGE_FORMAT]
"""Dialect requested by a host; the server refuses unknown ones."""

InjectionPoint = Literal["session-start", "per-message"]
"""When a memory source is asked: once per session, or for every prompt."""

_INJECTION_POINT = known_values(
    "InjectionPoint",
    "When a memory source is asked: once per session, or for every prompt.",
    *get_args(InjectionPoint),
)

AnyInjectionPoint = Annotated[str, _INJECTION_POINT]
"""Injection point named by a server; a newer server may know more."""

SpokenInjectionPoint = Annotated[InjectionPoint, _INJECTION_POINT]
"""Injection point requested by a host."""

MaintenanceMode = Annotated[
    str,
    known_values(
        "MaintenanceMode",
        "Whether the host waits for `context/maintain` before it continues.",
        "foreground",
        "background",
    ),
]
"""Whether the host waits for `context/maintain` before it continues."""

TraceValue = Annotated[
    str, known_values("TraceValue", "Trace level of the server.", "off", "messages", "verbose")
]
"""Trace level of the server."""


class Wire(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of all wire types: camelCase members, `null` means absent, unknown members are ignored."""

    exactly_one: ClassVar[tuple[str, ...]] = ()
    """Exactly one of these fields must be present; decoded types check that with `require_choice`."""
    at_least_one: ClassVar[tuple[str, ...]] = ()
    """At least one of these fields must be present; checked the same way."""

    def require_choice(self) -> None:
        """Check `exactly_one` and `at_least_one`.

        Raises:
            ValueError: too few or too many of the fields are present.
        """
        kind = type(self)
        for names, most in ((kind.exactly_one, 1), (kind.at_least_one, len(kind.at_least_one))):
            given = sum(getattr(self, name) is not None for name in names)
            if names and not 1 <= given <= most:
                wire = [kind.__struct_encode_fields__[kind.__struct_fields__.index(name)] for name in names]
                amount = "Exactly" if most == 1 else "At least"
                raise ValueError(f"{amount} one of {' and '.join(f'`{name}`' for name in wire)} is required")


class SessionParams(Wire, frozen=True, kw_only=True):
    """Params common to all requests about one session."""

    session_id: SessionId
    """The session: a key that the host chooses."""
    session_key: SessionKey | None = None
    """The agent's alias for the session; it refers to the session it was last used with."""
    agent_id: AgentId | None = None
    """Owner of the session: the first agent that uses it. To other agents the session does not exist."""
    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress by `$/progress`."""


class FallbackFor(Wire, frozen=True, kw_only=True):
    """The engine that was selected but could not serve."""

    id: str
    """Id of the engine that was selected."""
    reason: str
    """Why it could not serve, and what to fix."""


class EngineInfo(Wire, frozen=True, kw_only=True):
    """Description of a context engine."""

    id: str
    """Id by which hosts and configuration select the engine."""
    name: str
    """Name for people."""
    version: str
    """Version of the engine."""
    owns_compaction: bool
    """True if the engine compacts, so that the host must not."""
    turn_maintenance_mode: MaintenanceMode
    """Whether the host waits for `context/maintain` before it continues."""
    implements: list[str]
    """Methods that the engine implements itself, such as `afterTurn`; the server answers the others."""
    host_requirements: list[str] | None = None
    """Host capabilities without which the engine refuses to start."""
    fallback_for: FallbackFor | None = None
    """Present if this engine replaces the selected one."""


class ToolDefinition(Wire, frozen=True, kw_only=True):
    """A tool that the host may offer to its model."""

    name: str
    """Name under which `tools/call` knows the tool."""
    description: str
    """What the tool does, written for the model."""
    input_schema: JsonObject
    """JSON Schema of the arguments."""
