"""Spawned sessions over time: those whose preparation has expired are swept."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sidecar.engine.session import SpawnEndReason
from sidecar.server.engine_session import spawned_session
from sidecar.store.errors import StoreError
from sidecar.store.spawn import Spawn, SweepSpawns

if TYPE_CHECKING:
    from sidecar.server.sidecar import Sidecar

LONGEST_S = 3600.0
"""Seconds after which is looked again at the latest: another process may have prepared something."""
RETRY_S = 30.0
"""Seconds after which is tried again where the store could not serve."""

_log = logging.getLogger(__name__)


class Spawns:
    """Sweeps what expires, and tells engines what has ended."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._task: asyncio.Task[None] | None = None

    def watch(self, expires_ms: int | None) -> None:
        """Sweep at that time, if nothing is to be swept earlier."""
        if expires_ms is not None:
            self._wake_in(min(max(expires_ms / 1000 - time.time(), 0.0) + 0.001, LONGEST_S))

    def begin(self, after_s: float) -> None:
        """Look after so many seconds for what has expired while no process was there."""
        self._wake_in(after_s)

    def close(self) -> None:
        """Sweep no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    async def sweep(self) -> list[Spawn]:
        """Remove what has expired; returns it."""
        swept: list[Spawn] = await self._sidecar.store.write(SweepSpawns())
        await self.ended(swept, "swept")
        return swept

    async def ended(self, spawns: Iterable[Spawn], reason: SpawnEndReason) -> None:
        """Forget what is cached of the children, and tell their engines; one that fails is logged."""
        sidecar = self._sidecar
        for spawn in spawns:
            if spawn.namespace != sidecar.profile.namespace:
                continue
            if spawn.child_id is not None and reason in ("deleted", "swept", "rolledBack"):
                sidecar.sessions.forget(spawn.child_id)
                await sidecar.episodes.forget(spawn.child_id)
            sidecar.seats.forget()
            try:
                seat = await sidecar.seats.of(spawn.child_id or spawn.parent_id or "", None)
                if seat.has("spawn_ended"):
                    work = seat.engine.spawn_ended(spawned_session(spawn), reason)
                    await sidecar.run_engine(seat, "subagent/ended", work)
            except Exception:
                _log.exception("the end of a spawned session was not told to its engine")

    def _wake_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        self._timer = loop.call_at(due, self._wake)

    def _wake(self) -> None:
        self._timer = None
        if self._task is None:
            self._task = asyncio.ensure_future(self._look())
            self._task.add_done_callback(self._looked)

    def _looked(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("expired spawns were not swept", exc_info=error)

    async def _look(self) -> None:
        try:
            expiry = await self._sidecar.store.next_spawn_expiry()
            if expiry is not None and expiry <= time.time() * 1000:
                await self.sweep()
                expiry = await self._sidecar.store.next_spawn_expiry()
        except StoreError as error:
            _log.warning("expired spawns were not swept: %s", error)
            self._wake_in(RETRY_S)
            return
        self.watch(expiry)
