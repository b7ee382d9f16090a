"""The second engine: what it is asked, when, and what comes of it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, cast

from msgspec import structs

from sidecar.protocol.assembling import AssembleContextParams, AssembleContextResult
from sidecar.protocol.context import (
    AfterTurnContextParams,
    CompactContextParams,
    CompactContextResult,
    MaintainContextParams,
)
from sidecar.protocol.engine import ShadowReport
from sidecar.protocol.session import DeleteSessionParams
from sidecar.rpc.errors import RpcError
from sidecar.server.contained import Raised, contained, described
from sidecar.server.handlers.assemble import AssembleHandlers
from sidecar.server.handlers.compact import CompactHandlers
from sidecar.server.log_records import about
from sidecar.server.seating import EngineUnavailable
from sidecar.server.shadow.comparing import Answer, Comparison
from sidecar.server.shadow.double import Double
from sidecar.summarize.limits import CircuitBreaker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sidecar.rpc.call import Call
    from sidecar.server.sidecar import Sidecar

Params = AssembleContextParams | CompactContextParams | MaintainContextParams | AfterTurnContextParams

MOST_BYTES = 32 << 20
"""Bytes of requests that wait."""
FAILURES_IN_A_ROW = 5
PAUSE_S = 60.0
"""How long the engine is left alone after so many failures in a row."""
_QUIET_S = 0.02
"""So long no request may have been worked on before the shadow is asked anything."""

_log = logging.getLogger(__name__)


class Job(NamedTuple):
    """A request that the primary has answered."""

    params: Params
    size: int
    messages: Sequence[bytes] = ()
    """The primary's answer, where it is one to compare."""
    tokens: int = 0
    seconds: float = 0.0
    state: tuple[int, int] | None = None
    """The session's length and revision when it was answered."""


class Shadow:
    """Asks the second engine what the first one was asked, while there is nothing else to do."""

    def __init__(self, sidecar: Sidecar) -> None:
        settings = sidecar.settings.shadow
        assert settings is not None
        self._sidecar = sidecar
        self._settings = settings
        self._double = Double(sidecar, settings)
        self._assembling = AssembleHandlers(self._double.sidecar)
        self._compacting = CompactHandlers(self._double.sidecar)
        self._comparison = Comparison(sidecar.dialect)
        self._breaker = CircuitBreaker(FAILURES_IN_A_ROW, PAUSE_S)
        self._queue: deque[Job] = deque()
        self._bytes = 0
        self._dropped = 0
        self._outdated = 0
        self._working = False
        self._problem: str | None = None
        self._unavailable = False
        self._more = asyncio.Event()
        self._task = asyncio.ensure_future(self._work())

    def heard(self, call: Call, outcome: object, seconds: float) -> None:
        """A request was answered: put it into the queue, if the engine is to be asked too."""
        params = call.params
        if isinstance(outcome, RpcError) or self._unavailable:
            return
        if isinstance(params, DeleteSessionParams):
            self._double.forget(params.session_id)
            return
        if not isinstance(params, Params):
            return
        job = self._job(params, call.size, outcome, seconds)
        if job is None:
            return
        waits = self._breaker.is_waiting
        if waits or len(self._queue) >= self._settings.queue or self._bytes + job.size > MOST_BYTES:
            self._dropped += 1
            return
        self._queue.append(job)
        self._bytes += job.size
        self._more.set()

    def report(self) -> ShadowReport:
        """All that is known so far."""
        comparison = self._comparison
        return ShadowReport(
            primary=comparison.primary.described(self._sidecar.slot.default_id),
            shadow=comparison.shadow.described(self._settings.engine),
            compared=comparison.compared,
            coverage=comparison.coverage,
            waiting=len(self._queue) + self._working,
            dropped=self._dropped,
            outdated=self._outdated,
            problem=self._problem,
        )

    async def release(self) -> None:
        """Let go of the engine's instance; the next request makes a fresh one."""
        await self._double.sidecar.dispose_engines()

    async def close(self) -> None:
        """End the work and let go of the engine."""
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._double.sidecar.close()

    def _job(self, params: Params, size: int, outcome: object, seconds: float) -> Job | None:
        sidecar = self._sidecar
        exempt = sidecar.exempt
        if exempt is not None and exempt.of(params.session_id, params.session_key) is not None:
            return None
        if isinstance(outcome, CompactContextResult):
            return Job(params, size) if outcome.compacted else None
        if not isinstance(outcome, AssembleContextResult):
            return Job(params, size)
        live = sidecar.sessions.cached(params.session_id)
        result = live.results.get(outcome.result_id) if live is not None else None
        if live is None or result is None:
            return None
        state = (live.head.message_count, live.head.revision) if live.head else None
        return Job(params, size, result.messages, outcome.estimated_tokens, seconds, state)

    async def _work(self) -> None:
        while True:
            await self._more.wait()
            while self._queue:
                await self._quiet()
                job = self._queue.popleft()
                self._bytes -= job.size
                self._working = True
                try:
                    await self._do(job)
                finally:
                    self._working = False
            self._more.clear()

    async def _quiet(self) -> None:
        """Return once nothing has been worked on for a moment."""
        peer = self._sidecar.peer
        while True:
            idle = not peer.in_flight
            await asyncio.sleep(_QUIET_S)
            if idle and not peer.in_flight:
                return

    async def _do(self, job: Job) -> None:
        if not self._breaker.allows():
            self._dropped += 1
            return
        if await self._is_outdated(job):
            self._outdated += 1
            return
        began = perf_counter()
        outcome = await contained(self._asked(job))
        seconds = perf_counter() - began
        if isinstance(outcome, Raised):
            self._failed(outcome.error, seconds)
            return
        self._breaker.succeeded()
        self._problem = None
        if outcome is not None:
            if await self._is_outdated(job):
                self._outdated += 1
                return
            ours = Answer(job.messages, job.tokens, job.seconds)
            theirs = Answer(outcome[0], outcome[1], seconds)
            session_id = job.params.session_id
            # Reading thousands of messages takes a while, which must not be the loop's.
            await asyncio.to_thread(self._comparison.take, session_id, ours, theirs)

    async def _is_outdated(self, job: Job) -> bool:
        """Whether an answer now would be to another history than the primary's was."""
        if not isinstance(job.params, AssembleContextParams):
            return False
        head = await self._sidecar.store.session(self._sidecar.ref(job.params.session_id))
        return ((head.message_count, head.revision) if head else None) != job.state

    async def _asked(self, job: Job) -> tuple[Sequence[bytes], int] | None:
        """What the engine answers to the request, where it is one to compare."""
        call = cast("Call", None)
        await self._double.prepare(job.params)
        match job.params:
            case AssembleContextParams() as params:
                asked = structs.replace(params, previous_result_id=None, projection=None)
                answer = await self._assembling.assemble(asked, call)
                live = self._double.sidecar.sessions.cached(params.session_id)
                if live is not None:
                    # What the provider reports next is about the primary's answer.
                    live.sent = None
                return [bytes(message) for message in answer.messages or ()], answer.estimated_tokens
            case CompactContextParams() as params:
                await self._compacting.compact(structs.replace(params, work_done_token=None), call)
            case MaintainContextParams() as params:
                await self._compacting.maintain(structs.replace(params, work_done_token=None), call)
            case AfterTurnContextParams() as params:
                await self._double.after_turn(params)
        return None

    def _failed(self, error: BaseException, seconds: float) -> None:
        text = error.message if isinstance(error, RpcError) else described(error)
        self._unavailable = isinstance(error, EngineUnavailable)
        if isinstance(error, RpcError | EngineUnavailable):
            level, exc_info = logging.WARNING, None
        else:
            level, exc_info = logging.ERROR, error
        self._problem = text[:500]
        self._comparison.shadow.failed(seconds)
        self._breaker.failed()
        extra = about(event="shadowFailed", engine=self._settings.engine, ms=round(seconds * 1000, 1))
        _log.log(level, "the shadow did not answer: %s", text, extra=extra, exc_info=exc_info)
        if self._breaker.is_waiting:
            _log.warning("the shadow is left alone for %.0f s", PAUSE_S, extra=extra)
