"""A second sidecar beside the first: the same sessions, another engine, no host, nothing kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec import structs

from sidecar.engine.calls import AfterTurnRequest, IngestOutcome
from sidecar.server.configuration.settings import (
    ExemptionSettings,
    MemorySettings,
    RetentionSettings,
    ShadowSettings,
)
from sidecar.server.engine_session import EngineSession
from sidecar.server.host_profile import HostProfile
from sidecar.server.sessions.gathering import incoming
from sidecar.server.sessions.stubs import show_stubs
from sidecar.server.sessions.timeline import stored_timeline
from sidecar.server.shadow.overlay import OverlayStore
from sidecar.server.sidecar import Sidecar

if TYPE_CHECKING:
    from sidecar.protocol.context import AfterTurnContextParams, SessionParams
    from sidecar.rpc.peer import Peer
    from sidecar.server.seat import Seat
    from sidecar.store.contract import SessionStore

MOST_SHOWN = 500
"""Messages that an engine which takes them in itself is shown before one call, the newest."""


class SilentPeer:
    """The connection of a sidecar that has no host; see `sidecar.rpc.peer.Peer`."""

    in_flight = 0

    def lane_in_use(self, key: str) -> bool:
        """Whether requests wait in a lane: never."""
        del key
        return False

    def notify(self, method: str, params: object = None) -> None:
        """Say nothing."""
        del method, params


class Double:
    """The parts of the second sidecar that its requests go through."""

    def __init__(self, primary: Sidecar, settings: ShadowSettings) -> None:
        own = structs.replace(
            primary.settings,
            engine=settings.engine,
            on_engine_failure="fail",
            shadow=None,
            memory=MemorySettings(),
            episodes=None,
            model=None,
            retention=RetentionSettings(),
            exemptions=ExemptionSettings(),
            limits=structs.replace(primary.settings.limits, engine_timeout_ms=settings.timeout_ms),
        )
        profile = HostProfile(
            namespace=primary.profile.namespace,
            message_format=primary.profile.message_format,
            capabilities=frozenset(),
        )
        store = cast("SessionStore", OverlayStore(primary.store))
        self.sidecar = Sidecar(own, store, profile, cast("Peer", SilentPeer()))
        self.sidecar.counter = primary.counter
        self._shown: dict[str, int] = {}

    async def prepare(self, params: SessionParams) -> None:
        """Show the engine the messages that it has not seen, if it wants to see messages at all."""
        seat, session = await self._session(params)
        live = session.live
        if seat.stores or live.head is None:
            return
        count = live.head.message_count
        first = max(self._shown.get(params.session_id, 0), count - MOST_SHOWN) + 1
        for message in await live.store.messages(live.ref, first, count):
            work = seat.engine.ingest(seat.lend(session.another()), incoming(message))
            await self.sidecar.run_engine(
                seat, "context/ingest", work, params.session_id, result=IngestOutcome
            )
            self._shown[params.session_id] = message.position

    async def after_turn(self, params: AfterTurnContextParams) -> None:
        """Let the engine react to a turn; its messages are stored already."""
        seat, session = await self._session(params)
        if seat.has("after_turn") and session.live.head is not None:
            await show_stubs(session, seat.engine.payload_tokens)
            request = AfterTurnRequest(
                budget=params.token_budget,
                heartbeat=bool(params.is_heartbeat),
                auto_compaction_summary=params.auto_compaction_summary,
            )
            work = seat.engine.after_turn(seat.lend(session), request)
            await self.sidecar.run_engine(seat, "context/afterTurn", work, params.session_id)

    def forget(self, session_id: str) -> None:
        """Let go of a session that is deleted."""
        self._shown.pop(session_id, None)
        self.sidecar.sessions.forget(session_id)

    async def _session(self, params: SessionParams) -> tuple[Seat, EngineSession]:
        sidecar = self.sidecar
        seat = await sidecar.seats.of(params.session_id, params.agent_id)
        live = await sidecar.sessions.open(params.session_id, params.agent_id)
        return seat, EngineSession(live, stored_timeline(live), seat.id, agent_id=params.agent_id)
