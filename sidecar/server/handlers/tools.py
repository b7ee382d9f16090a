"""`tools/list` and `tools/call`: what engines offer to the model."""

from __future__ import annotations

from sidecar.protocol.tools import CallToolsParams, CallToolsResult, ListToolsParams, ListToolsResult
from sidecar.rpc.call import Call
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.router import Order, Router
from sidecar.server.failures import SessionNotFound
from sidecar.server.handlers.lane import session_lane
from sidecar.server.sidecar import Sidecar


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the methods around agent tools."""
    handlers = ToolHandlers(sidecar)
    router.request("tools/list", ListToolsParams, handlers.list)
    router.request("tools/call", CallToolsParams, handlers.call, order=Order.EXCLUSIVE, lane=session_lane)


class ToolHandlers:
    """Offers agent tools; no built-in engine has one yet."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def list(self, params: ListToolsParams, call: Call) -> ListToolsResult:
        """The tools of the session's engine."""
        del params, call
        return ListToolsResult(tools=[])

    async def call(self, params: CallToolsParams, call: Call) -> CallToolsResult:
        """Run a tool."""
        del call
        live = await self._sidecar.sessions.open(params.session_id, params.agent_id)
        if live.head is None:
            raise SessionNotFound(params.session_id)
        raise InvalidParams(
            f"name: there is no tool {params.name[:200]!r}", path="/name", hint="tools/list names the tools"
        )
