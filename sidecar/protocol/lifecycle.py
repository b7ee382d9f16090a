"""Types of the methods that open, end and accompany a connection, and the versions of the protocol.

A version is `MAJOR.MINOR`. A minor version only adds members, methods, enumeration values or error codes.
Changing the meaning of anything that exists requires a new major version.
"""

from typing import Annotated, Literal, NamedTuple, get_args

from sidecar.protocol.base import (
    ABSENT,
    NULL_HAS_MEANING,
    AnyMessageFormat,
    Count,
    EngineId,
    EngineInfo,
    JsonObject,
    JsonValue,
    Name,
    PositiveInt,
    ProgressToken,
    RequestId,
    SpokenMessageFormat,
    TraceValue,
    Wire,
    known_values,
)


class ProtocolVersion(NamedTuple):
    """One version of the protocol."""

    name: str
    summary: str
    """What it added, in one sentence."""


VERSIONS = (ProtocolVersion("1.0", "The first version."),)
"""All supported versions, oldest first."""

SUPPORTED = tuple(version.name for version in VERSIONS)
"""Names of the versions that a host may request, oldest first."""

LATEST = SUPPORTED[-1]
"""The version used with a host that names none."""


HostCapability = Literal[
    "runtime/complete",
    "runtime/compact",
    "runtime/rewriteTranscript",
    "memory/getContext",
    "session/changed",
    "assembleDelta",
    "ownsHistory",
]
"""Capabilities that a host can declare today."""

DeclaredCapability = Annotated[
    str,
    known_values(
        "HostCapability",
        "Capability that a host can declare; servers ignore unknown names.",
        *get_args(HostCapability),
    ),
]
"""Capability that a host declares, known here or not."""


class PeerInfo(Wire, frozen=True, kw_only=True):
    """Name and version of a program, as in the Language Server Protocol."""

    name: str
    """Name of the program."""
    version: str | None = None
    """Its version."""


class HostInfo(Wire, frozen=True, kw_only=True):
    """The agent runtime behind the connection."""

    id: Name
    """Short name of the runtime, such as `openclaw`; the default namespace."""
    version: str | None = None
    """Version of the runtime."""


class ContextEngineOptions(Wire, frozen=True, kw_only=True):
    """What the host asks of the server, under `initializationOptions.contextEngine`."""

    protocol_version: str | None = None
    """Version that the host speaks; absent means the newest."""
    host: HostInfo | None = None
    """The agent runtime."""
    host_capabilities: list[DeclaredCapability] | None = None
    """Requests that the host answers, `session/changed`, `assembleDelta` and `ownsHistory`; unknown names
    are ignored."""
    message_format: SpokenMessageFormat = "openai"
    """Dialect of every message on this connection."""
    engine: EngineId | None = None
    """Id of the engine to use; overrides the configured slot."""
    namespace: Name | None = None
    """Separates hosts that share a store; defaults to `host.id`, else `default`."""
    config: JsonObject = ABSENT
    """Overrides in the shape of the configuration file."""


class InitializationOptions(Wire, frozen=True, kw_only=True):
    """The client's initialization options; this protocol uses only `contextEngine`."""

    context_engine: ContextEngineOptions | None = None
    """What the host requests of the server."""


class InitializeParams(Wire, frozen=True, kw_only=True):
    """Params of `initialize`: those of the Language Server Protocol."""

    process_id: Annotated[int, NULL_HAS_MEANING] | None = None
    """Process id of the host, `null` for none; the server ends when a host that was alive dies."""
    client_info: PeerInfo | None = None
    """The client program."""
    locale: str | None = None
    """Language of the user, an IETF tag."""
    root_path: Annotated[str, NULL_HAS_MEANING] | None = None
    """Folder of the workspace, `null` if none is open; superseded by `rootUri`."""
    root_uri: Annotated[str, NULL_HAS_MEANING] | None = None
    """Folder of the workspace, `null` if none is open."""
    capabilities: JsonObject = ABSENT
    """Client capabilities of the Language Server Protocol."""
    initialization_options: InitializationOptions | None = None
    """Options of the client."""
    trace: TraceValue | None = None
    """Initial trace level."""
    workspace_folders: JsonValue = ABSENT
    """Folders of the workspace."""
    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class Limits(Wire, frozen=True, kw_only=True):
    """Limits of this connection."""

    max_message_bytes: PositiveInt
    """Largest body of one message, in bytes."""
    max_in_flight: PositiveInt
    """Maximum concurrent requests; further ones are parked."""
    max_parked_bytes: Count
    """Bytes of parked requests beyond which a request is refused with Busy."""
    host_request_timeout_ms: PositiveInt
    """How long the server waits for the host's answer, in milliseconds."""
    default_token_budget: PositiveInt
    """Budget of requests that name none, in tokens."""


class ContextEngineCapabilities(Wire, frozen=True, kw_only=True):
    """What the server offers, under `capabilities.experimental.contextEngine`."""

    protocol_version: str
    """Version that both sides speak from now on."""
    engine: EngineInfo
    """The engine that serves this connection."""
    methods: list[str]
    """Requests and notifications of this protocol that the server accepts."""
    tools: list[str]
    """Names of the tools that `tools/list` describes."""
    message_formats: list[AnyMessageFormat]
    """Dialects that the server supports."""
    limits: Limits
    """Limits of the connection."""


class ExperimentalCapabilities(Wire, frozen=True, kw_only=True):
    """Capabilities outside the Language Server Protocol."""

    context_engine: ContextEngineCapabilities
    """What the server offers to agent runtimes."""


class ServerCapabilities(Wire, frozen=True, kw_only=True):
    """Server capabilities of the Language Server Protocol, including those for editors."""

    experimental: ExperimentalCapabilities
    """Capabilities of this protocol."""


class InitializeResult(Wire, frozen=True, kw_only=True):
    """Result of `initialize`: settings are valid and the store is open."""

    capabilities: ServerCapabilities
    """What the server offers."""
    server_info: PeerInfo
    """The server program."""


class InitializedParams(Wire, frozen=True, kw_only=True):
    """Params of `initialized`: empty."""


MessageType = Annotated[
    int, known_values("MessageType", "1 error, 2 warning, 3 info, 4 log, 5 debug.", 1, 2, 3, 4, 5)
]
"""Severity of a log line."""


class ShutdownParams(Wire, frozen=True, kw_only=True):
    """Params of `shutdown`: empty."""


class ExitParams(Wire, frozen=True, kw_only=True):
    """Params of `exit`: empty."""


class CancelRequestParams(Wire, frozen=True, kw_only=True):
    """Params of `$/cancelRequest`."""

    id: RequestId
    """Id of the request to cancel."""


class ProgressParams(Wire, frozen=True, kw_only=True):
    """Params of `$/progress`."""

    token: ProgressToken
    """The token of the work."""
    value: JsonValue
    """A WorkDoneProgressBegin, WorkDoneProgressReport or WorkDoneProgressEnd."""


class WorkDoneProgressBegin(Wire, frozen=True, kw_only=True, tag_field="kind", tag="begin"):
    """Progress value: work has begun."""

    title: str
    """Title of the work, such as `Compacting`."""
    cancellable: bool | None = None
    """Whether cancelling the request stops the work."""
    message: str | None = None
    """Detail that may change as the work goes on."""
    percentage: int | None = None
    """Percentage done, 0 to 100; absent if unknown."""


class WorkDoneProgressReport(Wire, frozen=True, kw_only=True, tag_field="kind", tag="report"):
    """Progress value: work goes on."""

    cancellable: bool | None = None
    """Whether cancelling the request stops the work."""
    message: str | None = None
    """Detail of the current step."""
    percentage: int | None = None
    """Percentage done, 0 to 100, never falling."""


class WorkDoneProgressEnd(Wire, frozen=True, kw_only=True, tag_field="kind", tag="end"):
    """Progress value: work has ended."""

    message: str | None = None
    """How it ended."""


class SetTraceParams(Wire, frozen=True, kw_only=True):
    """Params of `$/setTrace`."""

    value: TraceValue
    """Trace level from now on."""


class LogMessageWindowParams(Wire, frozen=True, kw_only=True):
    """Params of `window/logMessage`."""

    type: MessageType
    """1 error, 2 warning, 3 info, 4 log, 5 debug."""
    message: str
    """The line to log."""


class CreateWindowWorkDoneProgressParams(Wire, frozen=True, kw_only=True):
    """Params of `window/workDoneProgress/create`."""

    token: ProgressToken
    """Token under which the server will report progress."""


class CancelWindowWorkDoneProgressParams(Wire, frozen=True, kw_only=True):
    """Params of `window/workDoneProgress/cancel`."""

    token: ProgressToken
    """Token of the work to stop."""
