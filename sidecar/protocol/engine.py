"""Types of the `engine/*` and `tools/*` methods."""

from sidecar.protocol.base import (
    ABSENT,
    AgentId,
    EngineInfo,
    JsonObject,
    ProgressToken,
    SessionId,
    SessionParams,
    ToolDefinition,
    Wire,
)


class ListEngineParams(Wire, frozen=True, kw_only=True):
    """Params of `engine/list`: empty."""


class EngineListing(EngineInfo, frozen=True, kw_only=True):
    """An engine that the server knows, usable or not."""

    active: bool
    """True for the engine that serves this connection."""
    available: bool
    """True if the engine can be selected now."""
    reason: str | None = None
    """Why it is not available, and what to fix."""


class ListEngineResult(Wire, frozen=True, kw_only=True):
    """Result of `engine/list`."""

    engines: list[EngineListing]
    """Every engine that is installed or configured."""


class DoctorEngineParams(Wire, frozen=True, kw_only=True):
    """Params of `engine/doctor`."""

    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class DoctorCheck(Wire, frozen=True, kw_only=True):
    """One diagnostic check."""

    name: str
    """Short stable name, such as `store`."""
    ok: bool
    """True if nothing needs to be done."""
    message: str
    """The finding."""
    fix: str | None = None
    """How to fix it."""


class ShadowSide(Wire, frozen=True, kw_only=True):
    """Statistics of one of the two engines compared."""

    engine: str
    """Id of the engine; for the primary, of the engine that serves by default."""
    answers: int
    """Answers to `context/assemble` that were compared."""
    failures: int
    """Requests it failed to answer; counted for the shadow only, since the host sees the primary's."""
    invalid: int
    """Answers that a provider would refuse."""
    mean_tokens: int
    """Mean tokens per answer."""
    prefix_kept: float | None = None
    """Share of the previous answer, in bytes, that the session's next answer begins with: what caches hit."""
    p50_ms: float
    """Median latency of the newest answers, in milliseconds."""
    p95_ms: float
    """95th percentile of their latency, in milliseconds."""


class ShadowReport(Wire, frozen=True, kw_only=True):
    """Two engines compared on the same requests."""

    primary: ShadowSide
    """The engine whose answers were sent."""
    shadow: ShadowSide
    """The engine whose answers were not."""
    compared: int
    """Requests that both engines answered."""
    coverage: float | None = None
    """Share of the bytes the primary sent that the shadow would have sent too, verbatim."""
    waiting: int
    """Requests still queued for the shadow."""
    dropped: int
    """Requests the shadow never received, because its queue was full or it was suspended."""
    outdated: int
    """Requests not compared, because the session changed in the meantime."""
    problem: str | None = None
    """Why its last answer failed, if it did."""


class DoctorEngineResult(Wire, frozen=True, kw_only=True):
    """Result of `engine/doctor`."""

    ok: bool
    """True if every check is ok."""
    checks: list[DoctorCheck]
    """All checks, in a stable order."""
    shadow: ShadowReport | None = None
    """Present if a shadow engine is configured."""


class ListToolsParams(Wire, frozen=True, kw_only=True):
    """Params of `tools/list`."""

    session_id: SessionId | None = None
    """List the tools of this session's engine; absent means the connection's engine."""
    agent_id: AgentId | None = None
    """Agent that requests the list."""


class ListToolsResult(Wire, frozen=True, kw_only=True):
    """Result of `tools/list`."""

    tools: list[ToolDefinition]
    """The tools that the engine offers; may be empty."""


class CallToolsParams(SessionParams, frozen=True, kw_only=True):
    """Params of `tools/call`."""

    name: str
    """Name of the tool, as `tools/list` gave it."""
    arguments: JsonObject = ABSENT
    """Arguments that satisfy the tool's input schema; absent means an empty object."""


class TextContent(Wire, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """A piece of text output of a tool."""

    text: str
    """The text, at most 16 000 characters."""


class CallToolsResult(Wire, frozen=True, kw_only=True):
    """Result of `tools/call`."""

    content: list[TextContent]
    """The content for the model."""
    structured_content: JsonObject = ABSENT
    """The same content for programs, in the tool's own format."""
    is_error: bool | None = None
    """True if the tool ran and failed; the content says why."""


class ListChangedToolsParams(Wire, frozen=True, kw_only=True):
    """Params of `tools/listChanged`."""

    session_id: SessionId | None = None
    """The session whose tools changed; absent means every session."""
