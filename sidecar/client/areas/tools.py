"""The `tools/*` requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from sidecar.client.areas.requesting import AboutSession, Requesting
from sidecar.client.message_bytes import encode_object
from sidecar.protocol.base import ABSENT, ToolDefinition
from sidecar.protocol.tools import CallToolsParams, CallToolsResult, ListToolsParams, ListToolsResult


class ToolRequests(Requesting):
    """Tools that the host may offer to its model."""

    async def tools(
        self, session_id: str | None = None, *, agent_id: str | None = None
    ) -> list[ToolDefinition]:
        """The tools of the session's engine, or of the connection's."""
        params = ListToolsParams(session_id=session_id, agent_id=agent_id)
        return (await self.request("tools/list", params, ListToolsResult)).tools

    async def call_tool(
        self,
        session_id: str,
        name: str,
        arguments: Mapping[str, object] | bytes | None = None,
        **about: Unpack[AboutSession],
    ) -> CallToolsResult:
        """Run a tool; `arguments` may be the JSON that a model wrote.

        Raises:
            InvalidParams: there is no such tool, or the arguments do not fit its schema.
        """
        params = CallToolsParams(
            session_id=session_id,
            name=name,
            arguments=ABSENT if arguments is None else encode_object(arguments),
            **about,
        )
        return await self.request("tools/call", params, CallToolsResult)
