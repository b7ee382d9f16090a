"""`context/explain` and `context/dispose`."""

from __future__ import annotations

from sidecar.engine.guard.decisions import explain
from sidecar.protocol.assembling import (
    ContextDecision,
    ExplainContextParams,
    ExplainContextResult,
    InjectedItem,
)
from sidecar.protocol.context import DisposeContextParams, DisposeContextResult
from sidecar.rpc.call import Call
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.router import Order, Router
from sidecar.server.failures import SessionNotFound
from sidecar.server.handlers.lane import session_lane
from sidecar.server.sidecar import Sidecar


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve `context/explain` and `context/dispose`."""
    handlers = ExplainHandlers(sidecar)
    router.request(
        "context/explain",
        ExplainContextParams,
        handlers.explain,
        order=Order.EXCLUSIVE,
        lane=session_lane,
    )
    router.request("context/dispose", DisposeContextParams, handlers.dispose)


class ExplainHandlers:
    """Tells what the model saw and why."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def explain(self, params: ExplainContextParams, call: Call) -> ExplainContextResult:
        """The decisions behind one answer."""
        del call
        live = await self._sidecar.sessions.open(params.session_id, params.agent_id)
        if params.result_id is not None:
            result = live.results.get(params.result_id)
            path = "/resultId"
        else:
            result = live.results.newest_of(params.turn_id)
            path = "/turnId"
        if result is None:
            if live.head is None and live.results.newest_of(None) is None:
                raise SessionNotFound(params.session_id)
            raise InvalidParams(
                f"{path[1:]}: no answer of that name is remembered",
                path=path,
                hint="the newest answers of a session are remembered; assemble again",
            )
        decisions = await explain(result.timeline, result.record)
        return ExplainContextResult(
            decisions=[
                ContextDecision(
                    message_id=d.message_id,
                    turn_id=d.turn_id,
                    tokens=d.tokens,
                    decision=d.verdict,
                    reason=d.reason,
                    by=d.by,
                )
                for d in decisions
            ],
            injected=[
                InjectedItem(
                    plugin_name=item.source,
                    injection_point=point,
                    tokens=item.tokens,
                    content=item.content,
                    id=item.id,
                )
                for point, injection in result.injections
                for item in injection.items
            ],
        )

    async def dispose(self, params: DisposeContextParams, call: Call) -> DisposeContextResult:
        """Flush and release the engines; the next call makes fresh instances."""
        del params, call
        await self._sidecar.dispose_engines()
        return DisposeContextResult()
