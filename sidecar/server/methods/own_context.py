"""What `context_status` and `context_compact` see and do of the session in which they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import json

from sidecar.protocol.context import CompactContextParams
from sidecar.server.methods.compact import COMPACTED, CompactHandlers
from sidecar.server.sessions.pins import add_pin, load_pins, remove_pin
from sidecar.tools.contract import Compacted, ContextStatus, PinShown

if TYPE_CHECKING:
    from sidecar.protocol.engine import CallToolsParams
    from sidecar.rpc.router import Call
    from sidecar.server.engines.instance import EngineInstance
    from sidecar.server.sidecar import Sidecar

KEPT = "kept by context_compact"
"""The note of the one pin that a model has."""


class OwnContext:
    """The `ContextControl` of one call of a tool."""

    def __init__(
        self, sidecar: Sidecar, instance: EngineInstance, params: CallToolsParams, call: Call
    ) -> None:
        self._sidecar = sidecar
        self._instance = instance
        self._params = params
        self._call = call

    async def status(self) -> ContextStatus:
        """See `ContextControl`."""
        live = await self._sidecar.sessions.look(self._params.session_id, self._params.agent_id)
        view = (await live.continuity()).newest
        done = await live.state(COMPACTED)
        return ContextStatus(
            engine=self._instance.id,
            message_count=live.message_count,
            tokens=live.answered[0] if live.answered else None,
            token_budget=view.latest if view else None,
            pins=[
                PinShown(pin_id=pin.pin_id, message_id=pin.message_id, text=pin.text, note=pin.note)
                for pin in await load_pins(live)
            ],
            compacted=json.decode(done, type=Compacted) if done else None,
        )

    async def compact(self, keep: str | None) -> Compacted | str:
        """See `ContextControl`."""
        sidecar, params = self._sidecar, self._params
        live = await sidecar.sessions.look(params.session_id, params.agent_id)
        if keep is not None:
            for pin in await load_pins(live):
                if pin.note == KEPT and pin.text != keep:
                    await remove_pin(live, pin.pin_id)
            await add_pin(live, message_id=None, text=keep, note=KEPT)
        asked = CompactContextParams(
            session_id=params.session_id,
            agent_id=params.agent_id,
            force=True,
            force_reason="tool",
            custom_instructions=keep,
        )
        answer = await CompactHandlers(sidecar).compact(asked, self._call)
        done = await live.state(COMPACTED)
        if not answer.compacted or done is None:
            return answer.reason or "only what you need next is left"
        return json.decode(done, type=Compacted)
