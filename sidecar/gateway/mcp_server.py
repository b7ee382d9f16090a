"""The recall tools over MCP, for programs that cannot ask the sidecar themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast
from urllib.parse import quote, unquote

import mcp.types as mcp
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from sidecar import __version__
from sidecar.client import SidecarClient, SidecarError
from sidecar.messages.dialects import dialect

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

SESSIONS = "context-sidecar://session/"
"""Begins the address of a session as a resource."""
SUMMARIES = "context-sidecar://summaries/"
"""Begins the address of what a session was summed up to."""
MOST_SESSIONS = 50
MOST_CHARACTERS = 100_000
"""Characters of a session that is read as a resource: its newest ones."""
SESSION = "sessionId"
"""Argument by which a call names another session than the newest."""

_ABOUT_SESSION = {
    "type": "string",
    "description": "A session from the list of resources (default: the newest of this folder).",
}


OF_THE_SERVING_PROCESS = frozenset(("context_status", "context_compact"))
"""Tools about what a model is sent: the process that sends it is another one, so they are not offered."""


class RecallServer:
    """Serves the tools of one session, or of the newest session that `belongs` accepts."""

    def __init__(self, client: SidecarClient, session_id: str | None, belongs: Callable[[str], bool]) -> None:
        self._client = client
        self._session_id = session_id
        self._belongs = belongs

    async def serve(self) -> None:
        """Speak MCP on standard input and output until its end."""
        server = Server[dict[str, object]](
            "context-sidecar",
            version=__version__,
            instructions="Search and reopen what was said earlier, also where it is no longer in view.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
        )
        async with stdio_server() as (source, sink):
            await server.run(source, sink, server.create_initialization_options())

    async def _sessions(self) -> list[tuple[str, str]]:
        """Ids and last changes of the sessions that belong here, the newest first."""
        found: list[tuple[str, str]] = []
        async for entry in self._client.sessions():
            if entry.session_id == self._session_id or self._belongs(entry.session_key or ""):
                found.append((entry.session_id, entry.updated_at))
            if len(found) == MOST_SESSIONS:
                break
        return found

    async def _session(self, asked: object) -> str | None:
        """The session that was asked for, else the newest. One of another folder counts as missing."""
        if isinstance(asked, str) and asked:
            try:
                key = (await self._client.session(asked)).session_key or ""
            except SidecarError:
                return None
            return asked if asked == self._session_id or self._belongs(key) else None
        return self._session_id or next((name for name, _ in await self._sessions()), None)

    async def _list_tools(
        self, context: ServerRequestContext[dict[str, object]], params: mcp.PaginatedRequestParams | None
    ) -> mcp.ListToolsResult:
        del context, params
        tools: list[mcp.Tool] = []
        for tool in await self._client.tools():
            if tool.name in OF_THE_SERVING_PROCESS:
                continue
            schema = msgspec.json.decode(tool.input_schema, type=dict[str, object])
            properties = cast("dict[str, object]", schema.get("properties") or {})
            schema["properties"] = {**properties, SESSION: _ABOUT_SESSION}
            tools.append(mcp.Tool(name=tool.name, description=tool.description, input_schema=schema))
        return mcp.ListToolsResult(tools=tools)

    async def _call_tool(
        self, context: ServerRequestContext[dict[str, object]], params: mcp.CallToolRequestParams
    ) -> mcp.CallToolResult:
        del context
        arguments = dict(params.arguments or {})
        session = await self._session(arguments.pop(SESSION, None))
        if session is None:
            return _failed("There is no such session of this folder.")
        if params.name in OF_THE_SERVING_PROCESS:
            return _failed(f"There is no tool {params.name} here.")
        try:
            answer = await self._client.call_tool(session, params.name, arguments)
        except SidecarError as problem:
            return _failed(str(problem))
        return mcp.CallToolResult(
            content=[mcp.TextContent(type="text", text=part.text) for part in answer.content],
            is_error=answer.is_error or False,
        )

    async def _list_resources(
        self, context: ServerRequestContext[dict[str, object]], params: mcp.PaginatedRequestParams | None
    ) -> mcp.ListResourcesResult:
        del context, params
        sessions = await self._sessions()
        return mcp.ListResourcesResult(
            resources=[
                mcp.Resource(
                    name=f"{name}{suffix}",
                    uri=scheme + quote(name, safe=""),
                    description=f"{what}, last changed {changed}",
                    mime_type="text/plain",
                )
                for name, changed in sessions
                for scheme, suffix, what in (
                    (SESSIONS, "", "Session"),
                    (SUMMARIES, " (summaries)", "Summaries of a session"),
                )
            ]
        )

    async def _read_resource(
        self, context: ServerRequestContext[dict[str, object]], params: mcp.ReadResourceRequestParams
    ) -> mcp.ReadResourceResult:
        del context
        for scheme, read in ((SESSIONS, self._transcript), (SUMMARIES, self._summaries)):
            if params.uri.startswith(scheme):
                session = await self._session(unquote(params.uri[len(scheme) :]))
                if session is not None:
                    text = await read(session)
                    break
        else:
            raise ValueError(f"There is no resource {params.uri}.")
        return mcp.ReadResourceResult(
            contents=[mcp.TextResourceContents(uri=params.uri, mime_type="text/plain", text=text)]
        )

    async def _summaries(self, session: str) -> str:
        """What the engine summed the session up to, oldest first, each with the id that reopens it."""
        nodes = await self._client.summaries(session)
        return "\n\n".join(f"[{node.node_id}] {node.text}" for node in nodes) or "(no summaries yet)"

    async def _transcript(self, session: str) -> str:
        """The session as text: as much of its newest messages as there is room for."""
        said: list[str] = []
        async for page in self._client.export(session):
            reader = dialect(page.message_format)
            for message in page.messages:
                reading = reader.read(message.body)
                parts = [reading.text, *(f"{call.name}({call.arguments})" for call in reading.calls)]
                parts += [result.text for result in reading.results]
                said.append(f"[{reading.role} {message.turn_id}] " + "\n".join(filter(None, parts)))
        room = MOST_CHARACTERS
        for place in range(len(said) - 1, -1, -1):
            room -= len(said[place])
            if room < 0:
                said[: place + 1] = [f"({place + 1} earlier messages: use context_search)"]
                break
        return "\n\n".join(said)


def _failed(reason: str) -> mcp.CallToolResult:
    return mcp.CallToolResult(content=[mcp.TextContent(type="text", text=reason)], is_error=True)
