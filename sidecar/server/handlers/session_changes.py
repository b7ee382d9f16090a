"""`session/configure`, `session/truncate`, `session/fork`, `session/delete`: changing sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Raw, json

from sidecar.protocol.session import (
    ConfigureSessionParams,
    ConfigureSessionResult,
    DeleteSessionParams,
    DeleteSessionResult,
    ForkSessionParams,
    ForkSessionResult,
    TruncateSessionParams,
    TruncateSessionResult,
)
from sidecar.protocol.tools import ListChangedToolsParams
from sidecar.rpc.call import Call
from sidecar.rpc.errors import InvalidParams
from sidecar.rpc.router import Order, Router
from sidecar.server.handlers.lane import OfSession
from sidecar.server.seating import EngineUnavailable
from sidecar.server.sessions.claims import claim_anew
from sidecar.server.sessions.registry import check_owner
from sidecar.server.sidecar import Sidecar
from sidecar.store.writes import Configure, Delete, Fork, Truncate


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the methods that change sessions."""
    handlers = SessionChangeHandlers(sidecar)

    def changing(params: OfSession) -> str | Sequence[str]:
        return sidecar.lanes.changing(params.session_id)

    router.request(
        "session/configure",
        ConfigureSessionParams,
        handlers.configure,
        order=Order.EXCLUSIVE,
        lane=lambda p: p.session_id,
    )
    router.request(
        "session/truncate", TruncateSessionParams, handlers.truncate, order=Order.EXCLUSIVE, lane=changing
    )
    router.request(
        "session/fork",
        ForkSessionParams,
        handlers.fork,
        order=Order.EXCLUSIVE,
        lane=lambda p: sidecar.lanes.changing(p.session_id, p.new_session_id),
    )
    router.request(
        "session/delete", DeleteSessionParams, handlers.delete, order=Order.EXCLUSIVE, lane=changing
    )


class SessionChangeHandlers:
    """Changes sessions in the store; what is cached of them follows."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def configure(self, params: ConfigureSessionParams, call: Call) -> ConfigureSessionResult:
        """Switch engine or settings for a session or an agent, from the next call on."""
        del call
        sidecar = self._sidecar
        scope: Literal["session", "agent"] = "session" if params.session_id is not None else "agent"
        scope_id = params.session_id if params.session_id is not None else params.agent_id
        if scope_id is None:
            raise InvalidParams("one of sessionId and agentId is needed", path="/sessionId")
        config = _object(params.config)
        before = await sidecar.seats.configured(scope, scope_id)
        default = await self._inherited(params)
        engine = params.engine or before.engine or default
        if config is None and before.config and engine != (before.engine or default):
            config = await self._fitting(engine, before.config)
        await sidecar.slot.check(engine, config if config is not None else before.config)
        if params.engine is not None or config is not None:
            await sidecar.store.write(
                Configure(sidecar.profile.namespace, scope, scope_id, engine=params.engine, config=config)
            )
            sidecar.seats.forget()
            if params.session_id is not None:
                self._sidecar.session_changed(params.session_id, "configured")
        now = await sidecar.seats.configured(scope, scope_id)
        if (now.engine or default) != (before.engine or default):
            sidecar.peer.notify("tools/listChanged", ListChangedToolsParams(session_id=params.session_id))
        return ConfigureSessionResult(engine=now.engine or default, config=Raw(now.config or b"{}"))

    async def truncate(self, params: TruncateSessionParams, call: Call) -> TruncateSessionResult:
        """Rewind a session to a message."""
        del call
        sidecar = self._sidecar
        ref = sidecar.ref(params.session_id)
        removed = await sidecar.store.write(Truncate(ref, params.after_message_id, agent_id=params.agent_id))
        if removed:
            sidecar.sessions.rewound(params.session_id)
            await claim_anew(sidecar.store, ref)
            self._sidecar.session_changed(params.session_id, "truncated")
        return TruncateSessionResult(removed_messages=removed)

    async def fork(self, params: ForkSessionParams, call: Call) -> ForkSessionResult:
        """Begin a new session with the messages of another."""
        del call
        sidecar = self._sidecar
        head = await sidecar.store.write(
            Fork(
                sidecar.ref(params.session_id),
                sidecar.ref(params.new_session_id),
                params.at_message_id,
                agent_id=params.agent_id,
            )
        )
        await claim_anew(sidecar.store, head.ref)
        sidecar.sessions.forget(params.new_session_id)
        sidecar.seats.forget()
        return ForkSessionResult(session_id=params.new_session_id, message_count=head.message_count)

    async def delete(self, params: DeleteSessionParams, call: Call) -> DeleteSessionResult:
        """Erase a session with all that belongs to it."""
        del call
        sidecar = self._sidecar
        deleted = await sidecar.store.write(Delete(sidecar.ref(params.session_id), agent_id=params.agent_id))
        sidecar.sessions.forget(params.session_id)
        sidecar.seats.forget()
        if deleted:
            await sidecar.episodes.forget(params.session_id)
            self._sidecar.session_changed(params.session_id, "deleted")
        return DeleteSessionResult(deleted=deleted)

    async def _inherited(self, params: ConfigureSessionParams) -> str:
        """The engine of a session, or agent, for which none is configured.

        Raises:
            SessionMissing: the session is another agent's.
        """
        sidecar = self._sidecar
        if params.session_id is not None:
            head = await sidecar.store.session(sidecar.ref(params.session_id))
            check_owner(head, params.agent_id)
            agent_id = head.agent_id if head and head.agent_id else params.agent_id
            agents = await sidecar.seats.configured("agent", agent_id) if agent_id else None
            if agents and agents.engine:
                return agents.engine
        return sidecar.slot.default_id

    async def _fitting(self, engine: str, config: bytes) -> bytes | None:
        """What replaces settings that were made for another engine: nothing where they are right for this."""
        try:
            await self._sidecar.slot.check(engine, config)
        except EngineUnavailable:
            return b"{}"
        return None


def _object(raw: Raw) -> bytes | None:
    """The bytes of a JSON object, `None` where it is absent.

    Raises:
        InvalidParams: it is something else.
    """
    given = bytes(raw)
    if given in (b"", b"null"):
        return None
    value: Any = json.decode(given)
    if not isinstance(value, dict):
        raise InvalidParams("config: expected an object", path="/config")
    return given
