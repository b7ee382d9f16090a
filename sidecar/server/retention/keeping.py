"""Applies retention while a sidecar serves: now and then, and only while no request is being worked on."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from sidecar.server.retention.pruning import Pruned, Pruning
from sidecar.store.errors import StoreError
from sidecar.store.stored import SessionRef

if TYPE_CHECKING:
    from sidecar.server.sidecar import Sidecar

FIRST_AFTER_S = 60.0
"""Seconds after the handshake until the first round, at the latest."""
_QUIET_S = 0.02
"""So long no request may have been worked on before a step."""

_log = logging.getLogger(__name__)


class Retention:
    """Rounds of retention, until it is closed."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin with the first round, a while from now."""
        self._task = asyncio.ensure_future(self._rounds())

    async def close(self) -> None:
        """End, between two steps; what is half erased is gone on with by the next process."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _rounds(self) -> None:
        rules = self._sidecar.settings.retention
        await asyncio.sleep(min(rules.every_s, FIRST_AFTER_S))
        while True:
            pruning = Pruning(
                self._sidecar.store, rules, in_use=self._in_use, pause=self._quiet, told=self._forget
            )
            try:
                await pruning.run()
            except (StoreError, OSError) as error:
                _log.warning("retention could not be applied: %s", error)
            except Exception:
                _log.exception("retention could not be applied")
            await asyncio.sleep(rules.every_s)

    async def _quiet(self) -> None:
        """Return once nothing has been worked on for a moment."""
        while True:
            idle = not self._sidecar.peer.in_flight
            await asyncio.sleep(_QUIET_S)
            if idle and not self._sidecar.peer.in_flight:
                return

    def _in_use(self, ref: SessionRef) -> bool:
        """Whether the session is held in memory here: an engine may still need it."""
        sidecar = self._sidecar
        return (
            ref.namespace == sidecar.profile.namespace and sidecar.sessions.cached(ref.session_id) is not None
        )

    async def _forget(self, pruned: Pruned) -> None:
        """Erase what is kept of a session beside the store."""
        sidecar = self._sidecar
        if pruned.namespace == sidecar.profile.namespace:
            sidecar.seats.forget()
        await sidecar.episodes.forget(pruned.session_id, pruned.namespace)
