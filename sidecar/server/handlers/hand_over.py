"""One request that hands over a piece of transcript, at work with the session that takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from sidecar.engine.calls import IncomingMessage, IngestOutcome
from sidecar.protocol.base import SessionParams
from sidecar.rpc.call import Call
from sidecar.server.engine_session import EngineSession
from sidecar.server.engines import LEGACY
from sidecar.server.handlers.ingest import stores_directly
from sidecar.server.seat import Seat
from sidecar.server.sessions.gathering import ingest_together
from sidecar.server.sessions.live import LiveSession
from sidecar.server.sessions.stubs import show_stubs
from sidecar.server.sessions.timeline import stored_timeline
from sidecar.server.sidecar import Sidecar
from sidecar.server.standing_in import ingested
from sidecar.store.stored import NewMessage
from sidecar.store.writes import AppendResult


class HandOver:
    """Stores what is new by the way of the session's engine."""

    def __init__(
        self, sidecar: Sidecar, seat: Seat, live: LiveSession, params: SessionParams, call: Call
    ) -> None:
        self.seat = seat
        self.live = live
        self.can_be_taken_back = False
        """True where what is stored goes again if the request is cancelled."""
        self._sidecar = sidecar
        self._params = params
        self._call = call

    @classmethod
    async def begin(cls, sidecar: Sidecar, params: SessionParams, call: Call) -> Self:
        """The request at its session, which need not be there yet."""
        seat = await sidecar.seats.of(params.session_id, params.agent_id, params.session_key)
        live = await sidecar.sessions.open(params.session_id, params.agent_id)
        live.stood_in = None
        return cls(sidecar, seat, live, params, call)

    @property
    def stores(self) -> bool:
        """False for the engine that stores nothing."""
        return self.seat.id != LEGACY

    def session(self) -> EngineSession:
        """The session as it is stored, for a call of the engine."""
        return EngineSession(
            self.live,
            stored_timeline(self.live),
            self.seat.id,
            agent_id=self._params.agent_id,
            session_key=self._params.session_key,
        )

    async def session_with_stubs(self) -> EngineSession:
        """The session with references in place of large results."""
        session = self.session()
        await show_stubs(session, self.seat.engine.payload_tokens)
        return session

    async def keep(self, new: Sequence[NewMessage], advancement_key: str | None = None) -> bool:
        """Store messages, all or none; true where the key was known, and nothing was stored."""
        if stores_directly(self.seat):
            result = await self._store(new, advancement_key)
        else:
            result = await self._gather(new, advancement_key)
        await self.live.refresh()
        return result.duplicate

    async def keep_staged(self) -> None:
        """Store what earlier transcripts of the host showed and no turn brought."""
        reconciler = self._sidecar.reconciler
        while staged := await reconciler.staged(self.live):
            await self.keep(staged)
            await reconciler.unstage(self.live)

    def go_through(self) -> None:
        """Let nobody cancel the request any more: a part of its effect is there, so the rest has to come."""
        self._call.on_cancel = _too_late

    async def _store(self, messages: Sequence[NewMessage], advancement_key: str | None) -> AppendResult:
        params, store, intake = self._params, self._sidecar.store, self._sidecar.intake
        whose = params.agent_id, params.session_key
        result: AppendResult = await store.write(
            intake.append(params.session_id, list(messages), *whose, advancement_key)
        )
        if not self.can_be_taken_back:
            self.go_through()
        if not result.duplicate and (again := intake.anew(result.items, messages)):
            await store.write(intake.append(params.session_id, again, *whose))
        return result

    async def _gather(self, new: Sequence[NewMessage], advancement_key: str | None) -> AppendResult:
        """Hand messages to an engine that looks at each before it is stored."""
        sidecar, seat, live = self._sidecar, self.seat, self.live
        results: list[AppendResult] = []

        async def keep(messages: list[NewMessage]) -> AppendResult:
            results.append(await self._store(messages, advancement_key))
            return results[0]

        async def ingest(session: EngineSession, message: IncomingMessage) -> IngestOutcome:
            outcome, fallback_for = await ingested(sidecar, seat, "context/ingest", session, message)
            live.stood_in = live.stood_in or fallback_for
            return outcome

        await ingest_together(
            new,
            self.session,
            ingest,
            keep,
            lambda message, index, result: sidecar.intake.told(result, index, message.body),
        )
        return results[0]


def _too_late() -> bool:
    return False
