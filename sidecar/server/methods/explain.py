"""`context/explain`, `context/dispose`, and what became of stored messages in the newest answer."""

from __future__ import annotations

from typing import NamedTuple

from sidecar.engine.guard.decisions import LISTED, Decision, explain
from sidecar.protocol.assemble import (
    ContextDecision,
    ExplainContextParams,
    ExplainContextResult,
    InjectedItem,
)
from sidecar.protocol.context import DisposeContextParams, DisposeContextResult
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.router import Call, Order, Router
from sidecar.server.failures import SessionNotFound
from sidecar.server.methods.lanes import session_lane
from sidecar.server.sidecar import Sidecar
from sidecar.store.stored import SessionRef

MOST = 2 * LISTED
"""The newest messages of a session about which is told."""


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
        live = await self._sidecar.sessions.look(params.session_id, params.agent_id)
        if params.result_id is not None:
            result = live.results.get(params.result_id)
            path = "/resultId"
        else:
            result = live.results.newest_of(params.turn_id)
            path = "/turnId"
        timeline = live.results.timeline
        if result is None or timeline is None:
            if live.head is None and live.results.newest_of(None) is None:
                raise SessionNotFound(params.session_id)
            raise InvalidParams(
                f"{path[1:]}: no answer of that name is remembered",
                path=path,
                hint="the newest answers of a session are remembered; assemble again",
            )
        decisions = await explain(timeline, result.record)
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


class Standing(NamedTuple):
    """Where a message stands in what the model sees."""

    decision: str
    """`sent`, `summarised`, `stubbed`, `dropped` or `pinned`."""
    reason: str


async def standings(
    sidecar: Sidecar, session_id: str, first: int = 1, last: int | None = None
) -> dict[int, Standing]:
    """What became of the messages at positions `first` to `last`, from 1, as far as that is known.

    Where this process remembers no answer of the session, it is what the stored summaries cover.
    """
    ref = sidecar.host.ref(session_id)
    head = await sidecar.store.session(ref)
    if head is None:
        return {}
    last = head.message_count if last is None else min(last, head.message_count)
    first = max(first, last - MOST + 1)
    live = sidecar.sessions.cached(session_id)
    result = live.results.newest_of(None) if live else None
    timeline = live.results.timeline if live else None
    if result is None or timeline is None:
        return await _covered(sidecar, ref, first, last)
    decided = {each.message_id: each for each in await explain(timeline, result.record)}
    rows = await sidecar.store.keyed(ref, first, last)
    return {row.position: _told(decided[row.message_id]) for row in rows if row.message_id in decided}


def _told(decided: Decision) -> Standing:
    by = f", {decided.by}" if decided.by and decided.verdict == "summarised" else ""
    return Standing(decided.verdict, decided.reason + by)


async def _covered(sidecar: Sidecar, ref: SessionRef, first: int, last: int) -> dict[int, Standing]:
    """The messages that a summary stands for; of several, the highest one."""
    found: dict[int, Standing] = {}
    for node in sorted(await sidecar.store.summaries(ref), key=lambda node: node.depth):
        why = f"summary {node.node_id} covers it; no answer is remembered here that would tell more"
        for position in range(max(first, node.first_position), min(last, node.last_position) + 1):
            found[position] = Standing("summarised", why)
    return found
