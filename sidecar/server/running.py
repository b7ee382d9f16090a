"""Runs one call of an engine within its limits, and tells what happened where it fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar, cast

from msgspec import Struct

from sidecar.engine.host import HostCapabilityMissing
from sidecar.engine.overflow import Overflow
from sidecar.rpc.errors import RpcError
from sidecar.server.answer_checks import checked
from sidecar.server.configuration.settings import Settings
from sidecar.server.contained import Raised, contained, described
from sidecar.server.failures import EngineFailed
from sidecar.server.health import InQuarantine
from sidecar.server.log_records import about
from sidecar.server.seat import Seat
from sidecar.store.errors import StoreError

T = TypeVar("T")

LONGEST_DISPOSE_MS = 5_000
"""How long an engine may take to flush; a host that ends the sidecar waits for it."""
_WINDS_UP_S = 1.0
"""How long a call from outside may take to end once it was cancelled, before it is left to itself."""
_GO_ON = (RpcError, StoreError, Overflow, HostCapabilityMissing)
"""What an engine may raise that has a meaning of its own."""
_TELLS_ALL = ("NonsenseAnswer", "EngineProblem", "ProcessFailed")
"""Exceptions of ours whose text is the whole story."""

_log = logging.getLogger(__name__)


class EngineRunner:
    """Calls engines; a failure is that of the call alone."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._abandoned: set[asyncio.Task[Any]] = set()
        """Calls that went on although they were cancelled."""

    def limit_ms(self, seat: Seat, method: str) -> int:
        """How long a call may take, in milliseconds."""
        member = method.rpartition("/")[2]
        return self._settings.entry(seat.id).timeouts_ms.get(member, self._settings.limits.engine_timeout_ms)

    async def run(
        self,
        seat: Seat,
        method: str,
        work: Awaitable[T],
        session_id: str = "",
        *,
        result: type[Struct] | None = None,
    ) -> T:
        """An engine's answer within its time limit, of the type `result` where one is given.

        Raises:
            EngineFailed: it raised, answered nonsense, or took too long; or it is in quarantine.
        """
        if seat.trusted:
            return await self._told(seat, method, work, self.limit_ms(seat, method))
        try:
            seat.health.admit(session_id)
        except InQuarantine as error:
            if isinstance(work, Coroutine):
                work.close()
            refused = EngineFailed(seat.id, method, str(error), retryable=True)
            refused.quarantined = True
            raise refused from None
        try:
            apart = self._apart(work if result is None else _checked(work, result))
            answer = await self._told(seat, method, apart, self.limit_ms(seat, method))
        except EngineFailed as error:
            pause_s = seat.health.failed(session_id, f"{method}: {error.data['message']}")
            if pause_s:
                extra = about(event="quarantine", engine=seat.id, sessionId=session_id or None)
                _log.warning("%s is not asked for %.0f s: it fails each time", seat.id, pause_s, extra=extra)
            raise
        except _GO_ON:
            self._went_well(seat, session_id)
            raise
        self._went_well(seat, session_id)
        return answer

    def _went_well(self, seat: Seat, session_id: str) -> None:
        if seat.health.went_well(session_id):
            extra = about(event="quarantineOver", engine=seat.id, sessionId=session_id or None)
            _log.warning("%s answers again", seat.id, extra=extra)

    async def release(self, seat: Seat) -> None:
        """Let the engine flush, and let go of it; what goes wrong is logged."""
        seat.retired = False
        limit_ms = min(self.limit_ms(seat, "dispose"), LONGEST_DISPOSE_MS)
        try:
            await self._told(seat, "dispose", self._apart(seat.engine.dispose()), limit_ms)
        except Exception as error:
            _log.warning("%s", error, extra=about(engine=seat.id, method="dispose"))

    async def _told(self, seat: Seat, method: str, work: Awaitable[T], limit_ms: int) -> T:
        limit = asyncio.timeout(limit_ms / 1000)
        try:
            async with limit:
                return await work
        except _GO_ON:
            raise
        except TimeoutError as error:
            if limit.expired():
                raise EngineFailed(seat.id, method, f"no answer within {limit_ms} ms") from error
            raise EngineFailed(seat.id, method, described(error)) from error
        except Exception as error:
            known = type(error).__name__ in _TELLS_ALL
            text = str(error) if known else described(error)
            failed = EngineFailed(seat.id, method, text, retryable=type(error).__name__ == "ProcessFailed")
            failed.unforeseen = not known
            raise failed from error

    async def _apart(self, work: Awaitable[T]) -> T:
        """The outcome of `work` in a task of its own, which cannot hold up whoever waits for it."""
        task = asyncio.ensure_future(contained(work))
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,), timeout=_WINDS_UP_S)
            if not task.done():
                self._abandoned.add(task)
                task.add_done_callback(self._abandoned.discard)
            raise
        outcome = task.result()
        if not isinstance(outcome, Raised):
            return outcome
        error = outcome.error
        if isinstance(error, Exception):
            raise error
        raise RuntimeError(outcome.described()) from error


async def _checked(work: Awaitable[T], kind: type[Struct]) -> T:
    return cast(T, checked(await work, kind))
