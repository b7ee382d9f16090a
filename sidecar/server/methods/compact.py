"""`context/compact`, `context/maintain`, `context/preflight`: making room, or telling that it is needed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from time import perf_counter, time

from msgspec import json, structs

from sidecar.engine.calls import (
    AssembleRequest,
    CompactOutcome,
    CompactRequest,
    MaintainOutcome,
    PreflightOutcome,
)
from sidecar.engine.guard.continuity import ViewRecord
from sidecar.engine.window import tokens_of
from sidecar.protocol.base import FallbackFor
from sidecar.protocol.context import (
    CompactContextParams,
    CompactContextResult,
    CompactionResult,
    MaintainContextParams,
    MaintainContextResult,
    PreflightContextParams,
    PreflightContextResult,
)
from sidecar.rpc.peer import Progress
from sidecar.rpc.router import Call, Order, Router
from sidecar.server.engines.host import detachable, raw_or_absent
from sidecar.server.engines.instance import LEGACY, EngineInstance
from sidecar.server.engines.session import EngineSession
from sidecar.server.failures import SessionNotFound
from sidecar.server.log import about
from sidecar.server.sessions.live import FRAME, LiveSession
from sidecar.server.sessions.pins import find_pins
from sidecar.server.sessions.pruning import show_stubs
from sidecar.server.sessions.timeline import SessionTimeline
from sidecar.server.sidecar import Sidecar
from sidecar.tools.contract import Compacted
from sidecar.tools.times import show_time

_log = logging.getLogger(__name__)

COMPACTED = "compacted"
"""The state in which it is kept what the last compaction did."""
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
        """Make room by the session's engine in the view of the budget and in the one that answered last.

        What is reported is the one of those in which there was anything to do that has more left: the next
        answer may be in either.
        """
        sidecar = self._sidecar
        instance, live = await self._live(params)
        default = sidecar.settings.limits.default_token_budget
        views: list[tuple[ViewRecord | None, int]] = [(None, params.token_budget or default)]
        if instance.engine.info.owns_compaction:
            views = [*(await live.to_act_on(params.token_budget) or await live.to_act_on(default))]
        detachable.set(call)
        began = perf_counter()
        outcomes: list[tuple[CompactOutcome, FallbackFor | None]] = []
        with self._progress(params, "Compacting") as report:
            for view, budget in views:
                session = await self._session(instance, live, params, view)
                session.report = report
                outcomes.append(
                    await self._compacted(instance, session, _request(params, budget, instance, live))
                )
                if outcomes[-1][0].compacted and view is not None:
                    await live.save_state(live.view_key(view.id, FRAME), None)
        compacted = [each for each in outcomes if each[0].compacted]
        outcome, fallback_for = max(compacted, key=_left_after) if compacted else outcomes[0]
        _tell(outcome, instance, perf_counter() - began)
        if outcome.compacted:
            await self._forget_injections(live, {view.id for view, _ in views if view is not None})
        await sidecar.episodes.flush(instance, live)
        if outcome.compacted and instance.id != LEGACY:
            await live.save_state(COMPACTED, json.encode(await _done(live, outcome)))
            await live.keep_epoch(await live.continuity(), begun=True)
            await _check_pins(live, min(budget for _, budget in views))
            sidecar.session_changed(params.session_id, "compacted")
        return structs.replace(_result(outcome), fallback_for=fallback_for or instance.fallback_for)

    async def _compacted(
        self, instance: EngineInstance, session: EngineSession, request: CompactRequest
    ) -> tuple[CompactOutcome, FallbackFor | None]:
        """What the engine makes of a compaction."""
        return await self._sidecar.runner.run_or_fall_back(
            instance,
            "context/compact",
            instance.engine.compact(instance.session_for(session), request),
            session.session_id,
            lambda: self._as_legacy(instance, session, request),
            result=CompactOutcome,
        )

    async def _as_legacy(
        self, instance: EngineInstance, session: EngineSession, request: CompactRequest
    ) -> CompactOutcome:
        """What the host makes of a compaction; a refusal where it does not compact by itself."""
        if "runtime/compact" not in self._sidecar.host.capabilities:
            reason = f"{instance.id} failed, and the host cannot compact"
            return CompactOutcome(ok=False, compacted=False, reason=reason)
        return await self._sidecar.services(instance.id).delegate_compaction(session, request)

    async def _forget_injections(self, live: LiveSession, views: Collection[str]) -> None:
        from sidecar.server.sessions.memory import forget_injections

        await forget_injections(live, views)

    async def maintain(self, params: MaintainContextParams, call: Call) -> MaintainContextResult:
        """Let the engine do its work between turns."""
        instance, live = await self._live(params)
        if not instance.has("maintain"):
            return MaintainContextResult(changed=False, bytes_freed=0, rewritten_entries=0)
        session = await self._session(instance, live, params, (await live.continuity()).newest)
        detachable.set(call)
        with self._progress(params, "Maintaining") as report:
            session.report = report
            work = instance.engine.maintain(instance.session_for(session), params.token_budget)
            outcome, fallback_for = await self._sidecar.runner.run_or_fall_back(
                instance,
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
        instance, snapshot = await sidecar.engines.begin(
            params.session_id, params.agent_id, params.session_key
        )
        live = await sidecar.sessions.look(params.session_id, params.agent_id, snapshot)
        pending = params.pending_tokens or 0
        if instance.id == LEGACY:
            timeline = await sidecar.reconciler.as_came(live, params.messages)
        else:
            timeline = await sidecar.reconciler.timeline(live, params.messages, None)
        session = EngineSession(live, timeline, instance.id, agent_id=params.agent_id)
        if instance.has("preflight"):
            continuity, budget = await live.continuity(), params.token_budget
            session.about(continuity.of(budget) or continuity.fresh(budget), instance.engine.shared_state)
            await show_stubs(session, instance.engine.payload_tokens)
            request = AssembleRequest(budget=max(params.token_budget - pending, 0))
            outcome, fallback_for = await sidecar.runner.run_or_fall_back(
                instance,
                "context/preflight",
                instance.engine.preflight(instance.session_for(session), request),
                params.session_id,
                lambda: _estimated(timeline, request.budget),
                result=PreflightOutcome,
            )
        else:
            outcome = await _estimated(timeline, params.token_budget - pending)
            fallback_for = instance.fallback_for
        return PreflightContextResult(
            fits=outcome.fits,
            estimated_tokens=outcome.estimated_tokens + pending,
            action=outcome.action,
            fallback_for=fallback_for,
        )

    @contextmanager
    def _progress(
        self, params: CompactContextParams | MaintainContextParams, title: str
    ) -> Generator[Callable[[str, int | None], None]]:
        progress = Progress(self._sidecar.host.peer, params.work_done_token)
        progress.begin(title, cancellable=True)
        try:
            yield lambda message, percentage: progress.report(message, percentage=percentage)
        finally:
            progress.end()

    async def _live(
        self, params: CompactContextParams | MaintainContextParams
    ) -> tuple[EngineInstance, LiveSession]:
        """The engine of a session and the session.

        Raises:
            SessionNotFound: there is no such session, and its engine stores.
        """
        sidecar = self._sidecar
        instance, snapshot = await sidecar.engines.begin(
            params.session_id, params.agent_id, params.session_key
        )
        live = await sidecar.sessions.look(params.session_id, params.agent_id, snapshot)
        if live.head is None and instance.id != LEGACY:
            raise SessionNotFound(params.session_id)
        return instance, live

    async def _session(
        self,
        instance: EngineInstance,
        live: LiveSession,
        params: CompactContextParams | MaintainContextParams,
        view: ViewRecord | None,
    ) -> EngineSession:
        session = EngineSession(
            live,
            live.stored_timeline(),
            instance.id,
            agent_id=params.agent_id,
            session_key=params.session_key,
        )
        if view is not None:
            session.about(view, instance.engine.shared_state)
        await show_stubs(session, instance.engine.payload_tokens)
        return session


def _request(
    params: CompactContextParams, budget: int, instance: EngineInstance, live: LiveSession
) -> CompactRequest:
    """What the engine is asked for one view."""
    if instance.engine.info.owns_compaction:
        budget = _left_of(budget, params.current_token_count, live)
    return CompactRequest(
        budget=budget,
        force=bool(params.force),
        force_reason=params.force_reason,
        current_token_count=params.current_token_count,
        target=params.compaction_target or "threshold",
        custom_instructions=params.custom_instructions,
    )


async def _done(live: LiveSession, outcome: CompactOutcome) -> Compacted:
    """What the model may be told of a compaction."""
    kept = outcome.first_kept_message_id
    stored = await live.store.message(live.ref, kept) if kept else None
    return Compacted(
        tokens_before=outcome.tokens_before,
        tokens_after=outcome.tokens_after or 0,
        message_count=live.message_count,
        first_kept_position=stored.position if stored else None,
        timestamp=show_time(int(time() * 1000)),
    )


async def _nothing_maintained() -> MaintainOutcome:
    return MaintainOutcome(reason="the engine failed")


async def _estimated(timeline: SessionTimeline, room: int) -> PreflightOutcome:
    """Whether everything fits into so many tokens, by counting."""
    estimate = tokens_of((await timeline.tail(max(room, 0))).entries)
    fits = estimate <= room
    return PreflightOutcome(fits=fits, estimated_tokens=estimate, action="none" if fits else "compact")


def _tell(outcome: CompactOutcome, instance: EngineInstance, took: float) -> None:
    if _log.isEnabledFor(logging.INFO):
        _log.info(
            "compacted" if outcome.compacted else "not compacted",
            extra=about(
                event="compaction",
                engine=instance.id,
                ms=round(took * 1000, 1),
                tokensBefore=outcome.tokens_before,
                tokensAfter=outcome.tokens_after,
            ),
        )


async def _check_pins(live: LiveSession, budget: int) -> None:
    """Say so where something that is pinned will not be in the next answer."""
    timeline = live.stored_timeline()
    pins, lost = await find_pins(live, timeline)
    pinned = await live.guard.room_for(pins, timeline, budget)
    for pin_id in [pin.pin_id for pin in pinned.left_out] + [pin.pin_id for pin in lost]:
        _log.warning("after a compaction, %s does not fit into %d tokens or is not there", pin_id, budget)


def _left_of(budget: int, measured: int | None, live: LiveSession) -> int:
    """The budget without what the host measured beside the messages, such as its own prompt and its tools."""
    if not measured or live.answered is None:
        return budget
    beside = max(measured - live.answered[0], 0)
    return max(budget - beside, budget // LEAST_SHARE, 1)


def _left_after(compacted: tuple[CompactOutcome, FallbackFor | None]) -> int:
    return compacted[0].tokens_after or 0


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
