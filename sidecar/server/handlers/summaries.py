"""`session/summaries`: the summaries that are in force, with what they cover."""

from __future__ import annotations

from msgspec import Raw, json

from sidecar.protocol.session import SummariesSessionParams, SummariesSessionResult, SummaryNode
from sidecar.protocol.times import format_rfc3339
from sidecar.rpc.call import Call
from sidecar.rpc.router import Order, Router
from sidecar.server.engine_session import state_name
from sidecar.server.failures import SessionNotFound
from sidecar.server.handlers.lane import session_lane
from sidecar.server.sessions.registry import check_owner
from sidecar.server.sidecar import Sidecar
from sidecar.store.stored import SessionRef

RECEIPTS = "receipts"
KEEPING = ("lossless",)
"""Engines that keep what their compactions did, in a value of that name: a JSON array."""


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve `session/summaries`."""
    handlers = SummaryHandlers(sidecar)
    router.request(
        "session/summaries",
        SummariesSessionParams,
        handlers.summaries,
        order=Order.EXCLUSIVE,
        lane=session_lane,
    )


class SummaryHandlers:
    """Reads summaries from the store, whichever engine wrote them."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def summaries(self, params: SummariesSessionParams, call: Call) -> SummariesSessionResult:
        """Every summary, in the order of what it covers, deeper ones first."""
        del call
        ref = self._sidecar.ref(params.session_id)
        head = await self._sidecar.store.session(ref)
        if head is None:
            raise SessionNotFound(params.session_id)
        check_owner(head, params.agent_id)
        nodes = await self._sidecar.store.summaries(ref)
        ids: dict[int, str] = {}
        listed: list[SummaryNode] = []
        for node in sorted(nodes, key=lambda node: (node.first_position, -node.depth)):
            for position in (node.first_position, node.last_position):
                if position not in ids:
                    ids[position] = await self._message_id(ref, position)
            listed.append(
                SummaryNode(
                    node_id=node.node_id,
                    depth=node.depth,
                    text=node.text,
                    tokens=node.tokens,
                    quality=node.quality,
                    created_at=format_rfc3339(node.created_ms),
                    first_message_id=ids[node.first_position],
                    last_message_id=ids[node.last_position],
                    message_count=node.last_position - node.first_position + 1,
                    sources=list(node.sources),
                )
            )
        return SummariesSessionResult(summaries=listed, receipts=await self._receipts(ref) or None)

    async def _receipts(self, ref: SessionRef) -> list[Raw]:
        """What the compactions of the engines that keep receipts did, also where another serves by now."""
        kept = [await self._sidecar.store.state(ref, state_name(engine, RECEIPTS)) for engine in KEEPING]
        return [receipt for value in kept if value for receipt in json.decode(value, type=list[Raw])]

    async def _message_id(self, ref: SessionRef, position: int) -> str:
        return next((m.message_id for m in await self._sidecar.store.keyed(ref, position, position)), "")
