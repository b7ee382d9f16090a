"""Delivers buffered episodes to a back end in the background until it has them all."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from random import random

from sidecar.episodes.contract import EpisodeBackend
from sidecar.store.buffer import BufferStore, Episode
from sidecar.store.errors import StoreError

SHORTEST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 300.0
LEASE_MARGIN_S = 2.0
"""How much a lease outlasts its delivery, so that no other process takes the episodes meanwhile."""

_log = logging.getLogger(__name__)


class Courier:
    """One delivery at a time: claims episodes, delivers them, deletes those taken.

    A process killed in between leaves a lease. Once it expires, the next process delivers the same episodes
    with the same keys.
    """

    def __init__(self, buffer: BufferStore, backend: EpisodeBackend) -> None:
        self.backend = backend
        self._buffer = buffer
        self._task: asyncio.Task[None] | None = None
        self._refused: set[int] = set()
        """Episodes that the back end refused; this process does not offer them again."""
        self._failures = 0
        self._requested = asyncio.Event()
        """Set if a delivery was requested since the last claim."""
        self._resting = asyncio.Event()
        """Set while nothing can be delivered: everything is, or deliveries are paused."""
        self.problem = ""
        """Why the last delivery failed; empty if it succeeded."""

    @property
    def lease_ms(self) -> int:
        """Duration of a claim in milliseconds."""
        return int((self.backend.limit_s + LEASE_MARGIN_S) * 1000)

    def start(self) -> None:
        """Start delivering buffered episodes; returns immediately."""
        self._requested.set()
        if self._task is None or self._task.done():
            self._resting.clear()
            self._task = asyncio.ensure_future(self._run())

    async def wait(self, seconds: float) -> None:
        """Wait until nothing more can be delivered for now, at most `seconds` seconds."""
        if self._task is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._resting.wait(), seconds)

    async def close(self) -> None:
        """Stop delivering; remaining episodes stay buffered."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))
        await self.backend.close()
        await self._buffer.close()

    async def _run(self) -> None:
        while True:
            self._requested.clear()
            try:
                pause = await self._round()
            except StoreError as error:
                self._failed(f"the buffer cannot be read: {error}")
                pause = self._back_off(0.0)
            except Exception as error:
                _log.exception("episodes could not be delivered")
                self._failed(type(error).__name__)
                pause = self._back_off(0.0)
            if pause is None:
                if self._requested.is_set():
                    continue
                self._resting.set()
                return
            if pause:
                self._resting.set()
                await self._pause(pause)
                self._resting.clear()

    async def _pause(self, seconds: float) -> None:
        """Wait until a delivery is requested; after a failure, wait the full time regardless of requests."""
        if self._failures:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._requested.wait(), seconds)

    async def _round(self) -> float | None:
        """Deliver one batch. Returns the seconds to wait before the next, `None` if nothing is left."""
        claimed = await self._buffer.claim(self.backend.batch, self.lease_ms)
        offered = [episode for episode in claimed if episode.rowid not in self._refused]
        if not claimed:
            return self.lease_ms / 1000 if await self._waiting() else None
        if not offered:
            return 0.0
        delivered = await self.backend.deliver(offered)
        if delivered.taken:
            await self._drop(offered, delivered.taken)
        if delivered.refused:
            self._refused.update(delivered.refused)
            _log.warning("%s refused %d episodes, still buffered", self.backend.name, len(delivered.refused))
        if not delivered.problem:
            self._failures, self.problem = 0, ""
            return 0.0
        self._failed(delivered.problem)
        # Claimed episodes become available only when their lease expires.
        return max(self._back_off(delivered.pause_s), self.lease_ms / 1000)

    async def _drop(self, offered: list[Episode], taken: object) -> None:
        rowids = [episode.rowid for episode in offered if episode.rowid in set(taken)]  # pyright: ignore
        gone = await self._buffer.delete_by_rowids(rowids)
        if gone < len(rowids):
            _log.info("%d episodes were also delivered by another process", len(rowids) - gone)

    async def _waiting(self) -> bool:
        """Whether other processes hold episodes that may become available again."""
        return await self._buffer.count() > len(self._refused)

    def _failed(self, problem: str) -> None:
        self._failures += 1
        self.problem = problem
        if self._failures == 1 or self._failures % 10 == 0:
            _log.warning("episodes stay buffered, %s did not take them: %s", self.backend.name, problem)

    def _back_off(self, requested: float) -> float:
        pause = min(SHORTEST_PAUSE_S * 2 ** min(self._failures - 1, 16), LONGEST_PAUSE_S)
        return max(requested, pause * (0.75 + random() / 2))
