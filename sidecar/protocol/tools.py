"""Types of the `tools/*` methods: agent tools in the shapes of the Model Context Protocol."""

from sidecar.protocol.base import ABSENT, JsonObject, Name, SessionId, SessionParams, ToolDefinition, Wire


class ListToolsParams(Wire, frozen=True, kw_only=True):
    """Params of `tools/list`."""

    session_id: SessionId | None = None
    """List the tools of this session's engine; absent means the connection's engine."""
    agent_id: Name | None = None
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

    session_id: str | None = None
    """The session whose tools changed; absent means every session."""
