"""Types of the handshake."""

from typing import Literal

from sidecar.protocol.base import (
    ABSENT,
    Count,
    EngineInfo,
    Id,
    JsonObject,
    JsonValue,
    MessageFormat,
    Name,
    PositiveInt,
    ProgressToken,
    Wire,
)

HostCapability = Literal[
    "runtime/complete",
    "runtime/compact",
    "runtime/rewriteTranscript",
    "memory/getContext",
    "session/changed",
    "assembleDelta",
]
"""What a host can declare today; a server passes over names that it does not know."""


class PeerInfo(Wire, frozen=True, kw_only=True):
    """Name and version of a program, as in the Language Server Protocol."""

    name: str
    """Name of the program."""
    version: str | None = None
    """Its version."""


class HostInfo(Wire, frozen=True, kw_only=True):
    """The agent runtime behind the connection."""

    id: Name
    """Short name of the runtime, such as `openclaw`; the namespace where none is given."""
    version: str | None = None
    """Version of the runtime."""


class ContextEngineOptions(Wire, frozen=True, kw_only=True):
    """What the host asks of the server, under `initializationOptions.contextEngine`."""

    protocol_version: str | None = None
    """Version that the host speaks; absent means the newest."""
    host: HostInfo | None = None
    """The agent runtime."""
    host_capabilities: list[str] | None = None
    """Requests that the host answers, `session/changed`, and `assembleDelta`; unknown names are ignored."""
    message_format: MessageFormat = "openai"
    """Dialect of every message on this connection."""
    engine: Id | None = None
    """Id of the engine to use; overrides the configured slot."""
    namespace: Name | None = None
    """Keeps hosts on one store apart; `host.id` where absent, else `default`."""
    config: JsonObject = ABSENT
    """Overrides in the shape of the configuration file."""


class InitializationOptions(Wire, frozen=True, kw_only=True):
    """The initialization options of the client; only `contextEngine` is ours."""

    context_engine: ContextEngineOptions | None = None
    """What the host asks of the server."""


class InitializeParams(Wire, frozen=True, kw_only=True):
    """Params of `initialize`: those of the Language Server Protocol."""

    process_id: int | None = None
    """Process id of the host; the server ends when a host that was alive dies."""
    client_info: PeerInfo | None = None
    """The client program."""
    locale: str | None = None
    """Language of the user, an IETF tag."""
    root_path: str | None = None
    """Folder of the workspace; superseded by `rootUri`."""
    root_uri: str | None = None
    """Folder of the workspace."""
    capabilities: JsonObject = ABSENT
    """Client capabilities of the Language Server Protocol."""
    initialization_options: InitializationOptions | None = None
    """Options of the client."""
    trace: str | None = None
    """`off`, `messages` or `verbose`."""
    workspace_folders: JsonValue = ABSENT
    """Folders of the workspace."""
    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class Limits(Wire, frozen=True, kw_only=True):
    """Bounds that the server keeps on this connection."""

    max_message_bytes: PositiveInt
    """Largest body of one message, in bytes."""
    max_in_flight: PositiveInt
    """Requests that are worked on at once; further ones are parked."""
    max_parked_bytes: Count
    """Bytes of parked requests beyond which a request is refused with Busy."""
    host_request_timeout_ms: PositiveInt
    """How long the server waits for an answer of the host, in milliseconds."""
    default_token_budget: PositiveInt
    """Budget where a request names none, in tokens."""


class ContextEngineCapabilities(Wire, frozen=True, kw_only=True):
    """What the server offers, under `capabilities.experimental.contextEngine`."""

    protocol_version: str
    """Version that both sides speak from now on."""
    engine: EngineInfo
    """The engine that serves this connection."""
    methods: list[str]
    """Requests and notifications of this protocol that the server takes."""
    tools: list[str]
    """Names of the tools that `tools/list` describes."""
    message_formats: list[MessageFormat]
    """Dialects that the server knows."""
    limits: Limits
    """Bounds that the server keeps."""


class ExperimentalCapabilities(Wire, frozen=True, kw_only=True):
    """Capabilities outside the Language Server Protocol."""

    context_engine: ContextEngineCapabilities
    """What the server offers to agent runtimes."""


class ServerCapabilities(Wire, frozen=True, kw_only=True):
    """Server capabilities of the Language Server Protocol; those for editors may stand beside ours."""

    experimental: ExperimentalCapabilities
    """Where this protocol has its place."""


class InitializeResult(Wire, frozen=True, kw_only=True):
    """Result of `initialize`: settings are valid and the store is open."""

    capabilities: ServerCapabilities
    """What the server offers."""
    server_info: PeerInfo
    """The server program."""


class InitializedParams(Wire, frozen=True, kw_only=True):
    """Params of `initialized`: nothing."""
