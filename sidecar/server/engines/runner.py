"""The engine runner: calls an engine within its limits, and stands in for one that fails."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Struct

from sidecar.engine.calls import Overflow
from sidecar.engine.host import HostCapabilityMissing
from sidecar.protocol.base import FallbackFor
from sidecar.rpc.errors import RpcError
from sidecar.server.configuration.settings import Settings
from sidecar.server.engines.answer_checks import Raised, checked, contained, described
from sidecar.server.engines.instance import LEGACY, EngineInstance, InQuarantine
from sidecar.server.failures import EngineFailed
from sidecar.server.log import about
from sidecar.store.errors import StoreError

if TYPE_CHECKING:
    from sidecar.server.engines.statistics import EngineWatch


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

    def __init__(self, settings: Settings, watch: EngineWatch) -> None:
        self._settings = settings
        self._watch = watch
        self._abandoned: set[asyncio.Task[Any]] = set()
        """Calls that went on although they were cancelled."""

    def limit_ms(self, instance: EngineInstance, method: str) -> int:
        """How long a call may take, in milliseconds."""
        member = method.rpartition("/")[2]
        return self._settings.entry(instance.id).timeouts_ms.get(
            member, self._settings.limits.engine_timeout_ms
        )

    async def run(
        self,
        instance: EngineInstance,
        method: str,
        work: Awaitable[T],
        session_id: str = "",
        *,
        result: type[Struct] | None = None,
    ) -> T:
        """An engine's answer within its time limit, of the type `result` where one is given.

        Raises:
            EngineFailed: it raised, answered nonsense, took too long, or is in quarantine for the session.
        """
        instance.calls += 1
        began, problem = time.perf_counter(), None
        try:
            return await self._run(instance, method, work, session_id, result)
        except BaseException as error:
            problem = error
            raise
        finally:
            self._watch.ended(instance, method, session_id, began, problem)
            problem = None
            instance.calls -= 1
            if instance.retired and not instance.calls:
                await self.release(instance)

    async def run_or_fall_back(
        self,
        instance: EngineInstance,
        method: str,
        work: Awaitable[T],
        session_id: str,
        instead: Callable[[], Awaitable[T]],
        *,
        result: type[Struct] | None = None,
    ) -> tuple[T, FallbackFor | None]:
        """The same; with `plugins.onEngineFailure = "legacy"`, `instead` and why where it fails.

        Raises:
            EngineFailed: it failed, and nothing may stand in for it.
        """
        try:
            return await self.run(instance, method, work, session_id, result=result), None
        except EngineFailed as error:
            if self._settings.on_engine_failure != LEGACY or instance.trusted:
                raise
            return await instead(), FallbackFor(id=instance.id, reason=str(error.data["message"]))

    async def _run(
        self,
        instance: EngineInstance,
        method: str,
        work: Awaitable[T],
        session_id: str,
        result: type[Struct] | None,
    ) -> T:
        if instance.trusted:
            return await self._limited(instance, method, work, self.limit_ms(instance, method))
        try:
            instance.health.admit(session_id)
        except InQuarantine as error:
            if isinstance(work, Coroutine):
                work.close()
            refused = EngineFailed(instance.id, method, str(error), retryable=True)
            refused.quarantined = True
            raise refused from None
        try:
            apart = self._apart(work if result is None else _checked(work, result))
            answer = await self._limited(instance, method, apart, self.limit_ms(instance, method))
        except EngineFailed as error:
            pause_s = instance.health.failed(session_id, f"{method}: {error.data['message']}")
            if pause_s:
                extra = about(event="quarantine", engine=instance.id, sessionId=session_id or None)
                _log.warning(
                    "%s is not asked for %.0f s: it fails each time", instance.id, pause_s, extra=extra
                )
            raise
        except _GO_ON:
            self._went_well(instance, session_id)
            raise
        self._went_well(instance, session_id)
        return answer

    def _went_well(self, instance: EngineInstance, session_id: str) -> None:
        if instance.health.went_well(session_id):
            extra = about(event="quarantineOver", engine=instance.id, sessionId=session_id or None)
            _log.warning("%s answers again", instance.id, extra=extra)

    async def release(self, instance: EngineInstance) -> None:
        """Let the engine flush, and let go of it; what goes wrong is logged."""
        instance.retired = False
        limit_ms = min(self.limit_ms(instance, "dispose"), LONGEST_DISPOSE_MS)
        try:
            await self._limited(instance, "dispose", self._apart(instance.engine.dispose()), limit_ms)
        except Exception as error:
            _log.warning("%s", error, extra=about(engine=instance.id, method="dispose"))

    async def _limited(self, instance: EngineInstance, method: str, work: Awaitable[T], limit_ms: int) -> T:
        limit = asyncio.timeout(limit_ms / 1000)
        try:
            async with limit:
                return await work
        except _GO_ON:
            raise
        except TimeoutError as error:
            if limit.expired():
                raise EngineFailed(instance.id, method, f"no answer within {limit_ms} ms") from error
            raise EngineFailed(instance.id, method, described(error)) from error
        except Exception as error:
            known = type(error).__name__ in _TELLS_ALL
            text = str(error) if known else described(error)
            failed = EngineFailed(
                instance.id, method, text, retryable=type(error).__name__ == "ProcessFailed"
            )
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
