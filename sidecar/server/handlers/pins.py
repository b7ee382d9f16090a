"""`session/pin`, `session/unpin`, `session/pins`: what must survive every compaction."""

from __future__ import annotations

from sidecar.protocol.session import (
    Pin,
    PinSessionParams,
    PinSessionResult,
    PinsSessionParams,
    PinsSessionResult,
    UnpinSessionParams,
    UnpinSessionResult,
)
from sidecar.protocol.times import format_rfc3339
from sidecar.rpc.call import Call
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.router import Order, Router
from sidecar.server.failures import SessionNotFound
from sidecar.server.handlers.lane import session_lane
from sidecar.server.sessions.live import LiveSession
from sidecar.server.sessions.pins import add_pin, load_pins, remove_pin
from sidecar.server.sessions.registry import check_owner
from sidecar.server.sidecar import Sidecar


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the methods around pins."""
    handlers = PinHandlers(sidecar)
    router.request("session/pin", PinSessionParams, handlers.pin, order=Order.EXCLUSIVE, lane=session_lane)
    router.request(
        "session/unpin", UnpinSessionParams, handlers.unpin, order=Order.EXCLUSIVE, lane=session_lane
    )
    router.request("session/pins", PinsSessionParams, handlers.pins, order=Order.EXCLUSIVE, lane=session_lane)


class PinHandlers:
    """Keeps pins in the store; the guard of every answer reads them there."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def pin(self, params: PinSessionParams, call: Call) -> PinSessionResult:
        """Keep a message or a text through every compaction."""
        del call
        live = await self._session(params.session_id, params.agent_id)
        if params.message_id is not None:
            if await live.store.message(live.ref, params.message_id) is None:
                raise InvalidParams(
                    f"messageId: the session has no message {params.message_id[:200]!r}", path="/messageId"
                )
        elif not (params.text or "").strip():
            raise InvalidParams("text: it is empty", path="/text")
        pin, new = await add_pin(live, message_id=params.message_id, text=params.text, note=params.note)
        if new:
            self._sidecar.session_changed(params.session_id, "pinned")
        return PinSessionResult(pin_id=pin.pin_id)

    async def unpin(self, params: UnpinSessionParams, call: Call) -> UnpinSessionResult:
        """Take a pin off."""
        del call
        live = await self._session(params.session_id, params.agent_id)
        unpinned = await remove_pin(live, params.pin_id)
        if unpinned:
            self._sidecar.session_changed(params.session_id, "unpinned")
        return UnpinSessionResult(unpinned=unpinned)

    async def pins(self, params: PinsSessionParams, call: Call) -> PinsSessionResult:
        """Every pin, oldest first."""
        del call
        live = await self._session(params.session_id, params.agent_id)
        return PinsSessionResult(
            pins=[
                Pin(
                    pin_id=pin.pin_id,
                    message_id=pin.message_id,
                    text=pin.text,
                    note=pin.note,
                    created_at=format_rfc3339(pin.created_ms),
                )
                for pin in await load_pins(live)
            ]
        )

    async def _session(self, session_id: str, agent_id: str | None) -> LiveSession:
        """The session, in whatever dialect it is.

        Raises:
            SessionNotFound: it is not there, or another agent's.
        """
        sidecar = self._sidecar
        head = await sidecar.store.session(sidecar.ref(session_id))
        if head is None:
            raise SessionNotFound(session_id)
        check_owner(head, agent_id)
        cached = sidecar.sessions.cached(session_id)
        return cached or LiveSession(sidecar.store, sidecar.ref(session_id), sidecar.dialect, sidecar.counter)
