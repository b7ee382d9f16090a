"""`context/compact`, `context/maintain`, `context/preflight`: making room, or telling that it is needed."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter

from msgspec import structs

from sidecar.engine.calls import (
    AssembleRequest,
    CompactOutcome,
    CompactRequest,
    MaintainOutcome,
    PreflightOutcome,
)
from sidecar.engine.window import tokens_of
from sidecar.protocol.context import (
    CompactContextParams,
    CompactContextResult,
    CompactionResult,
    MaintainContextParams,
    MaintainContextResult,
    PreflightContextParams,
    PreflightContextResult,
)
from sidecar.rpc.call import Call
from sidecar.rpc.progress import Progress
from sidecar.rpc.router import Order, Router
from sidecar.server.engine_session import EngineSession
from sidecar.server.engines import LEGACY
from sidecar.server.failures import SessionNotFound
from sidecar.server.host_services import detachable, raw_or_absent
from sidecar.server.log_records import about
from sidecar.server.seat import Seat
from sidecar.server.sessions.live import LiveSession
from sidecar.server.sessions.pins import find_pins
from sidecar.server.sessions.stubs import show_stubs
from sidecar.server.sessions.timeline import SessionTimeline, stored_timeline
from sidecar.server.sidecar import Sidecar
from sidecar.server.standing_in import asked, compact_as_legacy

_log = logging.getLogger(__name__)

LEAST_SHARE = 4
"""One part in so many of the budget is the messages', whatever the host measured beside them."""


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the methods around compaction."""
    handlers = CompactHandlers(sidecar)
    router.request(
        "context/compact",
        CompactContextParams,
        handlers.compact,
        order=Order.EXCLUSIVE,
        lane=sidecar.lanes.of,
    )
    router.request(
        "context/maintain",
        MaintainContextParams,
        handlers.maintain,
        order=Order.EXCLUSIVE,
        lane=sidecar.lanes.of,
    )
    router.request(
        "context/preflight",
        PreflightContextParams,
        handlers.preflight,
        order=Order.EXCLUSIVE,
        lane=sidecar.lanes.of,
    )


class CompactHandlers:
    """Compaction works on a snapshot: while it waits for the host, later requests of the session go on."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def compact(self, params: CompactContextParams, call: Call) -> CompactContextResult:
        """Make room as the session's engine does it."""
        sidecar = self._sidecar
        seat, session = await self._session(params)
        if session.live.head is None and seat.id != LEGACY:
            raise SessionNotFound(params.session_id)
        budget = params.token_budget or sidecar.settings.limits.default_token_budget
        if seat.engine.info.owns_compaction:
            budget = _left_of(budget, params.current_token_count, session.live)
        request = CompactRequest(
            budget=budget,
            force=bool(params.force),
            force_reason=params.force_reason,
            current_token_count=params.current_token_count,
            target=params.compaction_target or "threshold",
            custom_instructions=params.custom_instructions,
        )
        detachable.set(call)
        began = perf_counter()
        with self._progress(session, params, "Compacting"):
            outcome, fallback_for = await asked(
                sidecar,
                seat,
                "context/compact",
                seat.engine.compact(seat.lend(session), request),
                params.session_id,
                lambda: compact_as_legacy(sidecar, seat, session, request),
                result=CompactOutcome,
            )
        _tell(outcome, seat, perf_counter() - began)
        if outcome.compacted:
            await self._forget_injections(session)
        await sidecar.episodes.flush(seat, session.live)
        if outcome.compacted and seat.id != LEGACY:
            await _check_pins(session, request.budget)
            sidecar.session_changed(params.session_id, "compacted")
        return structs.replace(_result(outcome), fallback_for=fallback_for or seat.fallback_for)

    async def _forget_injections(self, session: EngineSession) -> None:
        from sidecar.server.memory.forgetting import forget_injections

        await forget_injections(self._sidecar, session.live)

    async def maintain(self, params: MaintainContextParams, call: Call) -> MaintainContextResult:
        """Let the engine do its work between turns."""
        seat, session = await self._session(params)
        if session.live.head is None and seat.id != LEGACY:
            raise SessionNotFound(params.session_id)
        if not seat.has("maintain"):
            return MaintainContextResult(changed=False, bytes_freed=0, rewritten_entries=0)
        detachable.set(call)
        with self._progress(session, params, "Maintaining"):
            work = seat.engine.maintain(seat.lend(session), params.token_budget)
            outcome, fallback_for = await asked(
                self._sidecar,
                seat,
                "context/maintain",
                work,
                params.session_id,
                _nothing_maintained,
                result=MaintainOutcome,
            )
        return MaintainContextResult(
            changed=outcome.changed,
            bytes_freed=outcome.bytes_freed,
            rewritten_entries=outcome.rewritten_entries,
            reason=outcome.reason,
            fallback_for=fallback_for,
        )

    async def preflight(self, params: PreflightContextParams, call: Call) -> PreflightContextResult:
        """Whether the next answer is going to fit."""
        del call
        sidecar = self._sidecar
        seat = await sidecar.seats.of(params.session_id, params.agent_id, params.session_key)
        live = await sidecar.sessions.open(params.session_id, params.agent_id)
        pending = params.pending_tokens or 0
        if seat.id == LEGACY:
            timeline = await sidecar.reconciler.as_came(live, params.messages)
        else:
            timeline = await sidecar.reconciler.timeline(live, params.messages, None)
        session = EngineSession(live, timeline, seat.id, agent_id=params.agent_id)
        if seat.has("preflight"):
            await show_stubs(session, seat.engine.payload_tokens)
            request = AssembleRequest(budget=max(params.token_budget - pending, 0))
            outcome, fallback_for = await asked(
                sidecar,
                seat,
                "context/preflight",
                seat.engine.preflight(seat.lend(session), request),
                params.session_id,
                lambda: _estimated(timeline, request.budget),
                result=PreflightOutcome,
            )
        else:
            outcome = await _estimated(timeline, params.token_budget - pending)
            fallback_for = seat.fallback_for
        return PreflightContextResult(
            fits=outcome.fits,
            estimated_tokens=outcome.estimated_tokens + pending,
            action=outcome.action,
            fallback_for=fallback_for,
        )

    @contextmanager
    def _progress(
        self, session: EngineSession, params: CompactContextParams | MaintainContextParams, title: str
    ) -> Generator[None]:
        progress = Progress(self._sidecar.peer, params.work_done_token)
        progress.begin(title, cancellable=True)
        session.report = lambda message, percentage: progress.report(message, percentage=percentage)
        try:
            yield
        finally:
            progress.end()

    async def _session(
        self, params: CompactContextParams | MaintainContextParams
    ) -> tuple[Seat, EngineSession]:
        sidecar = self._sidecar
        seat = await sidecar.seats.of(params.session_id, params.agent_id, params.session_key)
        live = await sidecar.sessions.open(params.session_id, params.agent_id)
        session = EngineSession(
            live, stored_timeline(live), seat.id, agent_id=params.agent_id, session_key=params.session_key
        )
        await show_stubs(session, seat.engine.payload_tokens)
        return seat, session


async def _nothing_maintained() -> MaintainOutcome:
    return MaintainOutcome(reason="the engine failed")


async def _estimated(timeline: SessionTimeline, room: int) -> PreflightOutcome:
    """Whether everything fits into so many tokens, by counting."""
    estimate = tokens_of((await timeline.tail(max(room, 0))).entries)
    fits = estimate <= room
    return PreflightOutcome(fits=fits, estimated_tokens=estimate, action="none" if fits else "compact")


def _tell(outcome: CompactOutcome, seat: Seat, took: float) -> None:
    if _log.isEnabledFor(logging.INFO):
        _log.info(
            "compacted" if outcome.compacted else "not compacted",
            extra=about(
                event="compaction",
                engine=seat.id,
                ms=round(took * 1000, 1),
                tokensBefore=outcome.tokens_before,
                tokensAfter=outcome.tokens_after,
            ),
        )


async def _check_pins(session: EngineSession, budget: int) -> None:
    """Say so where something that is pinned will not be in the next answer."""
    pins, lost = await find_pins(session.live, session.timeline)
    pinned = await session.live.guard.room_for(pins, session.timeline, budget)
    for pin_id in [pin.pin_id for pin in pinned.left_out] + [pin.pin_id for pin in lost]:
        _log.warning("after a compaction, %s does not fit into %d tokens or is not there", pin_id, budget)


def _left_of(budget: int, measured: int | None, live: LiveSession) -> int:
    """The budget without what the host measured beside the messages, such as its own prompt and its tools."""
    if not measured or live.answered is None:
        return budget
    beside = max(measured - live.answered[0], 0)
    return max(budget - beside, budget // LEAST_SHARE, 1)


def _result(outcome: CompactOutcome) -> CompactContextResult:
    measured = outcome.compacted or outcome.tokens_before
    return CompactContextResult(
        ok=outcome.ok,
        compacted=outcome.compacted,
        reason=outcome.reason,
        result=CompactionResult(
            summary=outcome.summary,
            first_kept_message_id=outcome.first_kept_message_id,
            tokens_before=outcome.tokens_before,
            tokens_after=outcome.tokens_after,
            details=raw_or_absent(outcome.details),
        )
        if measured
        else None,
    )
