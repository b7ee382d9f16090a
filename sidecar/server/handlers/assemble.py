"""`context/assemble`: the engine chooses, the guard makes it safe, the session keeps track."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from sidecar.engine.calls import AssembleRequest, Kept
from sidecar.engine.guard.answer import Answer
from sidecar.engine.guard.decisions import record
from sidecar.engine.overflow import Overflow
from sidecar.messages.appended import says
from sidecar.protocol.assembling import (
    AssembleContextParams,
    AssembleContextResult,
    CompositionPart,
    ContextProjection,
    MessageEdit,
    StablePrefix,
)
from sidecar.protocol.base import FallbackFor
from sidecar.rpc.call import Call
from sidecar.rpc.router import Order, Router
from sidecar.server.choosing import Chooser, signature
from sidecar.server.engine_session import EngineSession
from sidecar.server.engines import LEGACY
from sidecar.server.failures import SessionNotFound, overflow
from sidecar.server.seat import Seat
from sidecar.server.sessions.live import LiveSession
from sidecar.server.sessions.results import edits
from sidecar.server.sessions.timeline import SessionTimeline
from sidecar.server.sidecar import Sidecar

if TYPE_CHECKING:
    from sidecar.server.memory.session_memory import Given, SessionMemory

MESSAGE_OVERHEAD = 4
"""Tokens that the host's own user message takes around the prompt."""
LOOK_BACK = 4096
"""Tokens back from the end within which the reply to the answer before is looked for."""


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve `context/assemble`."""
    handlers = AssembleHandlers(sidecar)
    router.request(
        "context/assemble",
        AssembleContextParams,
        handlers.assemble,
        order=Order.EXCLUSIVE,
        lane=sidecar.lanes.of,
    )


class AssembleHandlers:
    """Answers what the model should see."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._chooser = Chooser(sidecar)

    async def assemble(self, params: AssembleContextParams, call: Call) -> AssembleContextResult:
        """One answer; the history stays as it is."""
        del call
        sidecar = self._sidecar
        seat = await sidecar.seats.of(params.session_id, params.agent_id, params.session_key)
        live = await sidecar.sessions.open(params.session_id, params.agent_id)
        if live.head is None and params.messages is None:
            raise SessionNotFound(params.session_id)
        if seat.id == LEGACY:
            timeline = await sidecar.reconciler.as_came(live, params.messages)
        else:
            timeline = await sidecar.reconciler.timeline(live, params.messages, params.prompt)
            await self._learn(live, timeline)
        await sidecar.episodes.turn_ended(seat, live, newest=False)
        live.failure = None
        answer, given = await self._answer(seat, live, timeline, params)
        sidecar.figures.of("context/assemble").tokens += answer.tokens
        return await self._result(seat, live, timeline, params, answer, given)

    async def _answer(
        self, seat: Seat, live: LiveSession, timeline: SessionTimeline, params: AssembleContextParams
    ) -> tuple[Answer, Given | None]:
        sidecar = self._sidecar
        budget = params.token_budget or sidecar.settings.limits.default_token_budget
        reserved = await _reserved(live, timeline, params.prompt)
        request = AssembleRequest(
            budget=max(budget - reserved, 0),
            prompt=params.prompt or "",
            model=params.model,
            available_tools=tuple(params.available_tools or ()),
            citations_mode=params.citations_mode,
        )
        session = EngineSession(
            live, timeline, seat.id, agent_id=params.agent_id, session_key=params.session_key
        )
        if seat.id == LEGACY:
            assembly = await self._chooser.choice(seat, session, request)
            return live.guard.as_came([item.entry for item in assembly.items if isinstance(item, Kept)]), None
        try:
            if reserved > budget:
                await live.guard.shrink_minimum(timeline, budget - reserved, prompted=True)
            memory = await sidecar.memory_of(live)
            if memory is not None:
                return await self._with_memory(memory, seat, session, request, params, reserved)
            return await self._chooser.answer(seat, session, request, None, prompted=reserved > 0), None
        except Overflow as error:
            raise overflow(error, reserved, budget) from None

    async def _with_memory(
        self,
        memory: SessionMemory,
        seat: Seat,
        session: EngineSession,
        request: AssembleRequest,
        params: AssembleContextParams,
        reserved: int,
    ) -> tuple[Answer, Given]:
        """The answer with the session's memory in it, or without where there is no room for both.

        Raises:
            Overflow: the minimum exceeds the budget even so.
        """
        live, prompted = session.live, reserved > 0
        given = await memory.give(live, session.timeline, params, request.budget)
        try:
            answer = await self._chooser.answer(seat, session, request, given, prompted=prompted)
        except Overflow:
            given = given.without()
            answer = await self._chooser.answer(seat, session, request, given, prompted=prompted)
        await memory.settle(live, given, answer)
        return answer, given

    async def _learn(self, live: LiveSession, timeline: SessionTimeline) -> None:
        """Compare our count of the answer before with what the provider reported for it."""
        if live.sent is None:
            return
        _, place = live.sent
        newer = [entry for entry in (await timeline.tail(LOOK_BACK)).entries if entry.place > place]
        reply = next((entry for entry in newer if entry.role == "assistant"), None)
        if reply is not None and (usage := reply.reading.usage):
            await live.learn(reply.reading.model or "", usage.input_tokens)

    async def _result(
        self,
        seat: Seat,
        live: LiveSession,
        timeline: SessionTimeline,
        params: AssembleContextParams,
        answer: Answer,
        given: Given | None,
    ) -> AssembleContextResult:
        messages = answer.messages
        slots = answer.fitted.slots
        live.sent = (answer.tokens, next((s.entry.place for s in reversed(slots) if s.entry), 0))
        live.answered = live.sent
        continuity = await live.continuity()
        begun = continuity.advance(messages, signature(seat, live, answer))
        await live.keep_epoch(continuity, begun=begun)
        turn_id = next((s.entry.turn_id for s in reversed(slots) if s.entry), "t1")
        previous = live.results.get(params.previous_result_id) if params.previous_result_id else None
        injections = given.injections if given is not None else ()
        result_id = live.results.add(messages, turn_id, record(seat.id, answer.fitted), timeline, injections)
        changes = None
        if previous and "assembleDelta" in self._sidecar.host_capabilities:
            changes = [
                MessageEdit(start=e.start, delete_count=e.delete_count, messages=list(map(Raw, e.messages)))
                for e in edits(previous.messages, messages)
            ]
        return AssembleContextResult(
            messages=None if changes is not None else list(map(Raw, messages)),
            edits=changes,
            estimated_tokens=answer.tokens,
            context_epoch=continuity.record.epoch,
            stable_prefix=StablePrefix(message_count=answer.stable_count, tokens=answer.stable_tokens),
            result_id=result_id,
            composition=[
                CompositionPart(kind=p.kind, tokens=p.tokens, message_count=p.message_count)
                for p in answer.composition
            ],
            system_prompt_addition=answer.system_prompt_addition,
            user_message_append=answer.user_message_append,
            fallback_for=_fallback(seat, live),
            context_projection=await _projected(seat, live, timeline, params, answer),
        )


def _fallback(seat: Seat, live: LiveSession) -> FallbackFor | None:
    """Whose answer this should have been, where it is that of another one."""
    return live.failure or seat.fallback_for


async def _reserved(live: LiveSession, timeline: SessionTimeline, prompt: str | None) -> int:
    """Tokens of the prompt, where the host is going to add it itself."""
    if not prompt:
        return 0
    newest = (await timeline.tail(0)).entries
    opener = await timeline.opener(newest[-1].turn) if newest else None
    if opener is not None and says(opener.reading.text, prompt):
        return 0
    return live.count(prompt) + MESSAGE_OVERHEAD


async def _projected(
    seat: Seat, live: LiveSession, timeline: SessionTimeline, params: AssembleContextParams, answer: Answer
) -> ContextProjection | None:
    """The answer for a backend that keeps its own thread, where the host asked for it."""
    if params.projection is None:
        return None
    from sidecar.server.projection import Thread, project, project_turn

    prompt = params.prompt if await _reserved(live, timeline, params.prompt) else None
    record = (await live.continuity()).record
    thread = Thread(params.session_id, record.name, record.epoch)
    if seat.id == LEGACY:
        return project_turn(answer.fitted.slots, thread, prompt=prompt)
    return project(
        answer.fitted.slots,
        thread,
        prompt=prompt,
        addition=answer.system_prompt_addition,
        append=answer.user_message_append,
    )
