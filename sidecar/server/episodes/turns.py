"""Hands turns to the desk for episodes, where the session's engine wants it and the operator asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidecar.server.configuration.settings import EpisodeSettings
    from sidecar.server.episodes.desk import EpisodeDesk
    from sidecar.server.seat import Seat
    from sidecar.server.sessions.live import LiveSession
    from sidecar.store.contract import SessionStore


class EpisodeTurns:
    """What becomes of turns when they end, and of what waits of them."""

    def __init__(self, settings: EpisodeSettings | None, store: SessionStore, namespace: str) -> None:
        self._settings = settings
        self._store = store
        self._namespace = namespace

    @cached_property
    def desk(self) -> EpisodeDesk | None:
        """Takes turns in for delivery, `None` where that is not asked for."""
        if self._settings is None:
            return None
        from sidecar.server.episodes.opening import open_desk

        return open_desk(self._settings, self._store, self._namespace)

    def deliver(self) -> None:
        """Deliver what is buffered, without waiting for it."""
        if self.desk is not None:
            self.desk.courier.start()

    async def session_began(self, seat: Seat, live: LiveSession) -> None:
        """Note that the first messages of a session have been ingested, so that episodes begin with them."""
        if seat.buffers_episodes and self.desk is not None:
            await self.desk.begin(live)

    async def turn_ended(self, seat: Seat, live: LiveSession, *, newest: bool = True) -> None:
        """Buffer what was said in turns that have ended, the newest one included or not."""
        if seat.buffers_episodes and self.desk is not None:
            await self.desk.take_if_possible(live, ended=newest)

    async def flush(self, seat: Seat, live: LiveSession) -> None:
        """Buffer the turns before the newest one, and let all that is buffered be delivered."""
        if seat.buffers_episodes and self.desk is not None:
            await self.desk.take_if_possible(live, ended=False)
            self.desk.courier.start()

    async def flush_rest(self, sessions: Iterable[LiveSession]) -> None:
        """Buffer all turns of these sessions, and wait a little for the delivery."""
        if self.desk is not None:
            await self.desk.take_rest(sessions)
            await self.desk.flush()

    async def forget(self, session_id: str, namespace: str | None = None) -> None:
        """Erase what was kept of a session that is deleted."""
        if self.desk is not None:
            await self.desk.forget(namespace or self._namespace, (session_id,))

    async def close(self) -> None:
        """Let go of the back end; what was not delivered stays buffered."""
        if (desk := self.__dict__.get("desk")) is not None:
            await desk.close()
