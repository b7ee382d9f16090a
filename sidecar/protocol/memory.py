"""Types of the `memory/*` methods."""

from sidecar.protocol.base import (
    AgentId,
    AnyInjectionPoint,
    Count,
    Name,
    PositiveInt,
    ProgressToken,
    SessionId,
    SessionKey,
    SpokenInjectionPoint,
    Timestamp,
    Wire,
)


class RegisterMemoryParams(Wire, frozen=True, kw_only=True):
    """Params of `memory/register`."""

    name: Name
    """Name of the source; the same name replaces an earlier registration."""
    injection_points: list[SpokenInjectionPoint]
    """When to ask the source."""
    token_budget: PositiveInt | None = None
    """Maximum tokens of this source in one compilation."""


class RegisterMemoryResult(Wire, frozen=True, kw_only=True):
    """Result of `memory/register`."""

    registered: bool
    """Always true: the source is asked from now on, as long as the connection lives."""


class UnregisterMemoryParams(Wire, frozen=True, kw_only=True):
    """Params of `memory/unregister`."""

    name: Name
    """Name of the source."""


class UnregisterMemoryResult(Wire, frozen=True, kw_only=True):
    """Result of `memory/unregister`."""

    unregistered: bool
    """False if no source of this name was registered."""


class GetContextMemoryParams(Wire, frozen=True, kw_only=True):
    """Params of `memory/getContext`, a request to the host."""

    name: str
    """Name under which the source was registered."""
    agent_id: AgentId
    """Agent for whose prompt this is."""
    injection_point: AnyInjectionPoint
    """Why the source is asked."""
    session_id: SessionId | None = None
    """The session, if there is one."""
    session_key: SessionKey | None = None
    """Alias of the session."""
    prompt: str | None = None
    """Text of the user, to which the memory should be relevant."""


class MemoryFragment(Wire, frozen=True, kw_only=True):
    """A piece of text that a memory source wants the model to see."""

    id: str | None = None
    """Id of the piece within its source; defaults to a hash of the content."""
    content: str
    """The text."""
    tokens: int | float | None = None
    """Size in tokens; if absent or not positive, the server estimates it."""
    priority: int | float = 50
    """0 to 100; the lowest is cut first."""
    label: str | None = None
    """Heading for people."""
    synthesize: bool | None = None
    """False keeps the text verbatim and away from any model; absent means true."""


class GetContextMemoryResult(Wire, frozen=True, kw_only=True):
    """Result of `memory/getContext`."""

    fragments: list[MemoryFragment]
    """The source's fragments, best first; may be empty."""


class CompileMemoryParams(Wire, frozen=True, kw_only=True):
    """Params of `memory/compile`."""

    agent_id: AgentId
    """Agent for whose prompt this is."""
    injection_point: SpokenInjectionPoint
    """Which sources to ask."""
    session_id: SessionId | None = None
    """The session; if given, fragments already injected into it are left out."""
    prompt: str | None = None
    """Text of the user, to which the memory should be relevant."""
    token_budget: PositiveInt | None = None
    """Budget of the compilation, in tokens; absent means the configured one."""
    work_done_token: ProgressToken | None = None
    """Token under which the server reports progress."""


class CompiledFragment(Wire, frozen=True, kw_only=True):
    """What became of one fragment."""

    plugin_name: str
    """The source of the fragment."""
    content: str
    """The text as the source supplied it."""
    tokens: Count
    """Size used for the budget, in tokens."""
    priority: int | float
    """0 to 100."""
    included: bool
    """False if it did not fit."""


class CompileMemoryResult(Wire, frozen=True, kw_only=True):
    """Result of `memory/compile`."""

    final_content: str
    """The text to inject; empty if no source had any."""
    tokens: Count
    """Size of the text, in tokens."""
    synthesized: bool
    """True if a model rewrote fragments into one text."""
    fragments: list[CompiledFragment]
    """Every fragment that was considered."""


class ContextInjectedMemoryParams(Wire, frozen=True, kw_only=True):
    """Params of `memory/contextInjected`: the outcome of a compilation."""

    agent_id: AgentId
    """Agent for whose prompt this was."""
    injection_point: AnyInjectionPoint
    """Which sources were asked."""
    fragments: list[CompiledFragment]
    """Every fragment that was considered."""
    synthesized: bool
    """True if a model rewrote fragments into one text."""
    final_content: str
    """The text that the answer carries."""
    timestamp: Timestamp
    """When it was compiled."""
    session_id: SessionId | None = None
    """The session, if there is one."""
