"""Types of the `engine/*` and `tools/*` methods: engines, and the agent tools that they offer."""

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
    """Params of `engine/list`: nothing."""


class EngineListing(EngineInfo, frozen=True, kw_only=True):
    """An engine that the server knows, usable or not."""

    active: bool
    """True for the engine that serves this connection."""
    available: bool
    """True where the engine could be selected now."""
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
    """One thing that was looked at."""

    name: str
    """Short stable name, such as `store`."""
    ok: bool
    """True where nothing has to be done."""
    message: str
    """What was found."""
    fix: str | None = None
    """What to do about it."""


class ShadowSide(Wire, frozen=True, kw_only=True):
    """What one of two engines that are compared has answered."""

    engine: str
    """Its id; of the primary, the one that serves where nothing else is configured."""
    answers: int
    """Answers to `context/assemble` that were compared."""
    failures: int
    """Requests that it could not answer; of the shadow only, since the host sees the others."""
    invalid: int
    """Answers that a provider would refuse."""
    mean_tokens: int
    """Tokens of an answer, on average."""
    prefix_kept: float | None = None
    """Share of the answer before, in bytes, that the next one of the session begins with: for caches."""
    p50_ms: float
    """Milliseconds within which half of the newest answers came."""
    p95_ms: float
    """Milliseconds within which 95 of 100 of them came."""


class ShadowReport(Wire, frozen=True, kw_only=True):
    """Two engines compared on the same requests."""

    primary: ShadowSide
    """The engine whose answers were sent."""
    shadow: ShadowSide
    """The engine whose answers were not."""
    compared: int
    """Requests that both have answered."""
    coverage: float | None = None
    """Share of what the primary sent, in bytes, that the shadow would have sent too, word for word."""
    waiting: int
    """Requests that the shadow is still to be asked."""
    dropped: int
    """Requests that it was never asked, since too many were waiting or it was left alone."""
    outdated: int
    """Requests that it was not compared on, since the session went on in between."""
    problem: str | None = None
    """Why it did not answer last, where it did not."""


class DoctorEngineResult(Wire, frozen=True, kw_only=True):
    """Result of `engine/doctor`."""

    ok: bool
    """True where every check is."""
    checks: list[DoctorCheck]
    """What was looked at, in a stable order."""
    shadow: ShadowReport | None = None
    """Set where a shadow is configured."""


class ListToolsParams(Wire, frozen=True, kw_only=True):
    """Params of `tools/list`."""

    session_id: SessionId | None = None
    """List the tools of this session's engine; absent means the connection's engine."""
    agent_id: AgentId | None = None
    """Agent on whose behalf the list is asked for."""


class ListToolsResult(Wire, frozen=True, kw_only=True):
    """Result of `tools/list`."""

    tools: list[ToolDefinition]
    """The tools that the engine offers; empty for engines without."""


class CallToolsParams(SessionParams, frozen=True, kw_only=True):
    """Params of `tools/call`."""

    name: str
    """Name of the tool, as `tools/list` gave it."""
    arguments: JsonObject = ABSENT
    """Arguments that satisfy the tool's input schema; absent means an empty object."""


class TextContent(Wire, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """A piece of tool output that is text."""

    text: str
    """The text, at most 16 000 characters."""


class CallToolsResult(Wire, frozen=True, kw_only=True):
    """Result of `tools/call`."""

    content: list[TextContent]
    """What the model is shown."""
    structured_content: JsonObject = ABSENT
    """The same for programs; its shape is the tool's own."""
    is_error: bool | None = None
    """True where the tool ran and failed; the content says why."""


class ListChangedToolsParams(Wire, frozen=True, kw_only=True):
    """Params of `tools/listChanged`."""

    session_id: SessionId | None = None
    """The session whose tools changed; absent means every session."""
