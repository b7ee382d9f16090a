"""`context/assemble`: lets the engine choose what to send, and makes its choice safe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Raw, structs

from sidecar.engine.calls import AssembleRequest, Assembly, Kept, Overflow
from sidecar.engine.guard.answer import Answer
from sidecar.engine.guard.continuity import ANY_BUDGET, Continuity, ViewRecord
from sidecar.engine.guard.decisions import record
from sidecar.engine.guard.frame import continued, frame_of
from sidecar.engine.guard.pinned import Pin, Pinned
from sidecar.engine.guard.stubs import Stubs
from sidecar.engine.session import Session
from sidecar.engine.signature import digest
from sidecar.engine.window import SLACK, newest_that_fits
from sidecar.messages.identity import says
from sidecar.protocol.assemble import (
    AssembleContextParams,
    AssembleContextResult,
    CompositionPart,
    ContextProjection,
    MessageEdit,
    StablePrefix,
)
from sidecar.protocol.base import FallbackFor
from sidecar.rpc.router import Call, Order, Router
from sidecar.server.engines.answer_checks import checked_assembly
from sidecar.server.engines.instance import LEGACY, EngineInstance
from sidecar.server.engines.session import EngineSession, OutsideSession
from sidecar.server.failures import SessionNotFound, overflow
from sidecar.server.sessions.live import FRAME, LiveSession, edits
from sidecar.server.sessions.pins import find_pins
from sidecar.server.sessions.pruning import keep_stubs, prune_ahead, prune_answer, restore, show_stubs
from sidecar.server.sessions.timeline import SessionTimeline
from sidecar.server.sidecar import Sidecar

if TYPE_CHECKING:
    from sidecar.server.sessions.memory import Given, SessionMemory


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
        instance, snapshot = await sidecar.engines.begin(
            params.session_id, params.agent_id, params.session_key
        )
        use = sidecar.sessions.look if params.messages is None else sidecar.sessions.open
        live = await use(params.session_id, params.agent_id, snapshot)
        if live.head is None and params.messages is None:
            raise SessionNotFound(params.session_id)
        if instance.id == LEGACY:
            timeline = await sidecar.reconciler.as_came(live, params.messages)
        else:
            timeline = await sidecar.reconciler.timeline(live, params.messages, params.prompt)
            await self._learn(live, timeline)
        await sidecar.episodes.turn_began(instance, live)
        live.failure = None
        view = await _view_of(
            instance, live, params.token_budget or sidecar.settings.limits.default_token_budget
        )
        try:
            answer, given = await self._answer(instance, live, timeline, view, params)
        except BaseException:
            if not view.begun:
                live.forget_views([view])
            raise
        sidecar.figures.of("context/assemble").tokens += answer.tokens
        return await self._result(instance, live, timeline, view, params, answer, given)

    async def _answer(
        self,
        instance: EngineInstance,
        live: LiveSession,
        timeline: SessionTimeline,
        view: ViewRecord,
        params: AssembleContextParams,
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
            live, timeline, instance.id, agent_id=params.agent_id, session_key=params.session_key
        )
        session.about(view, instance.engine.shared_state)
        if instance.id == LEGACY:
            assembly = await self._chooser.choice(instance, session, request)
            return live.guard.as_came([item.entry for item in assembly.items if isinstance(item, Kept)]), None
        try:
            if reserved > budget:
                await live.guard.shrink_minimum(
                    live.guard.no_stubs(), timeline, budget - reserved, prompted=True
                )
            memory = await sidecar.memory_of(live)
            if memory is not None:
                return await self._with_memory(memory, instance, session, view, request, params, reserved)
            return await self._chooser.answer(
                instance, session, view, request, None, prompted=reserved > 0
            ), None
        except Overflow as error:
            raise overflow(error, reserved, budget) from None

    async def _with_memory(
        self,
        memory: SessionMemory,
        instance: EngineInstance,
        session: EngineSession,
        view: ViewRecord,
        request: AssembleRequest,
        params: AssembleContextParams,
        reserved: int,
    ) -> tuple[Answer, Given]:
        """The answer with the session's memory in it, or without where there is no room for both.

        Raises:
            Overflow: the minimum exceeds the budget even so.
        """
        live, prompted = session.live, reserved > 0
        given = await memory.give(live, view.id, session.timeline, params, request.budget)
        try:
            answer = await self._chooser.answer(instance, session, view, request, given, prompted=prompted)
        except Overflow:
            given = given.without()
            answer = await self._chooser.answer(instance, session, view, request, given, prompted=prompted)
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
        instance: EngineInstance,
        live: LiveSession,
        timeline: SessionTimeline,
        view: ViewRecord,
        params: AssembleContextParams,
        answer: Answer,
        given: Given | None,
    ) -> AssembleContextResult:
        messages = answer.messages
        slots = answer.fitted.slots
        live.sent = (answer.tokens, next((s.entry.place for s in reversed(slots) if s.entry), 0))
        live.answered, live.answered_view = live.sent, view.id
        continuity = await live.continuity()
        view.latest = params.token_budget or self._sidecar.settings.limits.default_token_budget
        begun = continuity.advance(view, messages, signature(instance, live, answer))
        live.forget_views(continuity.drop_oldest())
        await live.keep_epoch(continuity, begun=begun)
        turn_id = next((s.entry.turn_id for s in reversed(slots) if s.entry), "t1")
        previous = live.results.get(params.previous_result_id) if params.previous_result_id else None
        base = previous.messages if previous is not None else None
        injections = given.injections if given is not None else ()
        result_id = self._sidecar.sessions.new_result_id()
        live.results.add(
            result_id, messages, turn_id, record(instance.id, answer.fitted), timeline, injections
        )
        changes = None
        if base is not None and "assembleDelta" in self._sidecar.host.capabilities:
            changes = [
                MessageEdit(start=e.start, delete_count=e.delete_count, messages=list(map(Raw, e.messages)))
                for e in edits(base, messages)
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
            fallback_for=_fallback(instance, live),
            context_projection=await _projected(instance, live, timeline, view, params, answer),
        )


def _fallback(instance: EngineInstance, live: LiveSession) -> FallbackFor | None:
    """Whose answer this should have been, where it is that of another one."""
    return live.failure or instance.fallback_for


async def _view_of(instance: EngineInstance, live: LiveSession, budget: int) -> ViewRecord:
    """The view that a budget belongs to; a new one counts from its first answer on."""
    continuity = await live.continuity()
    if instance.id == LEGACY:
        budget = ANY_BUDGET
    return continuity.of(budget) or continuity.fresh(budget)


async def _reserved(live: LiveSession, timeline: SessionTimeline, prompt: str | None) -> int:
    """Tokens of the prompt, where the host is going to add it itself."""
    if not prompt:
        return 0
    newest = (await timeline.tail(0)).entries
    opener = await timeline.opener(newest[-1].turn) if newest else None
    if opener is not None and says(opener.reading, prompt, live.marks.ours(prompt, "user")):
        return 0
    return live.count(prompt) + MESSAGE_OVERHEAD


async def _projected(
    instance: EngineInstance,
    live: LiveSession,
    timeline: SessionTimeline,
    view: ViewRecord,
    params: AssembleContextParams,
    answer: Answer,
) -> ContextProjection | None:
    """The answer for a backend that keeps its own thread, where the host asked for it."""
    if params.projection is None:
        return None
    from sidecar.server.methods.projection import Thread, project, project_turn

    prompt = params.prompt if await _reserved(live, timeline, params.prompt) else None
    record = (await live.continuity()).record
    thread = Thread(params.session_id, record.name, view.begun)
    if instance.id == LEGACY:
        return project_turn(answer.fitted.slots, thread, prompt=prompt)
    return project(
        answer.fitted.slots,
        thread,
        prompt=prompt,
        addition=answer.system_prompt_addition,
        append=answer.user_message_append,
        wrap=live.marks.wrap,
    )


class Chooser:
    """Asks engines on behalf of `context/assemble`."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def answer(
        self,
        instance: EngineInstance,
        session: EngineSession,
        view: ViewRecord,
        request: AssembleRequest,
        given: Given | None,
        *,
        prompted: bool,
    ) -> Answer:
        """The engine's choice, made safe; `prompted` where the host adds the newest message itself.

        Raises:
            Overflow: the minimum exceeds the budget.
            EngineFailed: there is no choice, and no stand-in is wanted.
        """
        live, timeline, budget = session.live, session.timeline, request.budget
        stubs = await show_stubs(session, instance.engine.payload_tokens)
        room = budget - (given.tokens if given is not None else 0)
        pins, _ = await find_pins(live, timeline)
        if changed := restore(stubs, view, pins, instance.signature):
            pins, _ = await find_pins(live, timeline)
        changed |= await live.guard.shrink_minimum(stubs, timeline, room, prompted=prompted)
        pinned = await live.guard.room_for(pins, timeline, room, prompted=prompted)
        asking = _Asking(self, instance, session, view, stubs, given, budget, pinned, prompted=prompted)
        asking.continuity = await live.continuity()
        request = structs.replace(request, budget=max(room - pinned.tokens, 0))
        answer, pruned = await self._pruned(asking, request, pins)
        changed |= pruned
        changed |= stubs.add(slot.entry for slot in answer.fitted.slots if slot.entry)
        if stubs.grown:
            stubs.forget_all_but(slot.entry for slot in answer.fitted.slots if slot.entry)
        if changed or stubs.grown:
            await keep_stubs(session, stubs)
        await asking.keep(answer)
        return answer

    async def choice(
        self, instance: EngineInstance, session: EngineSession, request: AssembleRequest
    ) -> Assembly:
        """What the engine chooses, or what stands in for it where it fails.

        Raises:
            EngineFailed: it fails, and no stand-in is wanted.
        """
        work = _chosen(instance, instance.session_for(session), request)
        assembly, stood_in = await self._sidecar.runner.run_or_fall_back(
            instance,
            "context/assemble",
            work,
            session.session_id,
            lambda: newest_that_fits(session.timeline, request.budget),
        )
        session.live.failure = stood_in or session.live.failure
        return assembly

    async def _pruned(
        self, asking: _Asking, request: AssembleRequest, pins: Sequence[Pin]
    ) -> tuple[Answer, bool]:
        """The answer, after old results gave way where an epoch begins anyway, and whether any did."""
        session, view, stubs = asking.session, asking.view, asking.stubs
        rules = self._sidecar.settings.pruning
        spared = {entry.message_id for pin in pins for entry in pin.entries}
        prunes = rules.enabled and not asking.instance.shortens_results
        ahead = prunes and await prune_ahead(session, stubs, view, rules, request.budget, spared)
        answer = await asking.ask(request)
        if asking.begins(answer) and (held := await asking.held()) is not None:
            return held, ahead
        if answer.fitted.excess:
            # What the guard leaves out comes back next time; an engine's own cut stays where it is.
            less = max(request.budget - answer.fitted.excess, 0)
            answer = await asking.ask(structs.replace(request, budget=less))
        if not prunes or ahead:
            return answer, ahead
        if asking.begins(answer) and prune_answer(session, stubs, rules, answer, request.budget, spared):
            return await asking.ask(request), True
        return answer, False


class _Asking:
    """One request for an answer of a view, and what the engine has said to it."""

    continuity: Continuity

    def __init__(
        self,
        chooser: Chooser,
        instance: EngineInstance,
        session: EngineSession,
        view: ViewRecord,
        stubs: Stubs,
        given: Given | None,
        budget: int,
        pinned: Pinned,
        *,
        prompted: bool,
    ) -> None:
        self.instance = instance
        self.session = session
        self.view = view
        self.stubs = stubs
        self._chooser = chooser
        self._given = given
        self._budget = budget
        self._pinned = pinned
        self._prompted = prompted
        self._assembly: Assembly | None = None
        self._is_held = False

    async def ask(self, request: AssembleRequest) -> Answer:
        """The engine's choice for a budget, made safe."""
        assembly = await self._chooser.choice(self.instance, self.session, request)
        if self.view.bare and assembly.system_prompt_addition:
            bare = structs.replace(assembly, system_prompt_addition=None)
            answer = await self._guarded(bare)
            if not self.begins(answer):
                return answer
        return await self._guarded(assembly)

    def begins(self, answer: Answer) -> bool:
        """Whether the answer does not go on from the last one of its view."""
        messages, signed = answer.messages, signature(self.instance, self.session.live, answer)
        return self.continuity.begins(self.view, messages, signed)

    async def held(self) -> Answer | None:
        """The last answer of the view with what came since, where its engine may have lost sight of it.

        `None` for engines that know of views, where the newest answer was the engine's own and of this view,
        and where it does not fit any more.
        """
        live, view = self.session.live, self.view
        if self.instance.engine.shared_state is not None or not view.begun or live.own_choice == view.id:
            return None
        kept = await live.state(live.view_key(view.id, FRAME))
        assembly = await continued(kept, self.session.timeline) if kept else None
        if assembly is None:
            return None
        said = self._assembly
        try:
            answer = await self._guarded(assembly)
        except Overflow:
            answer = None
        if answer is None or answer.fitted.excess or self.begins(answer):
            self._assembly = said
            return None
        self._is_held = True
        return answer

    async def keep(self, answer: Answer) -> None:
        """Remember what the answer was made of, where its engine knows of no views."""
        live, view, assembly = self.session.live, self.view, self._assembly
        view.bare = bool(assembly and assembly.system_prompt_addition and not answer.system_prompt_addition)
        if self.instance.engine.shared_state is not None or assembly is None:
            return
        if live.own_choice == view.id and self.begins(answer):
            had_room = live.answered is not None and live.answered[0] <= self._budget * SLACK
            live.restless = live.restless or had_room
        live.own_choice = view.id if not self._is_held or live.restless else None
        frame = frame_of(assembly, answer.fitted.slots, answer.system_prompt_addition)
        name, value = live.view_key(view.id, FRAME), frame.encoded() if frame else None
        if value != await live.state(name):
            await live.save_state(name, value)

    async def _guarded(self, assembly: Assembly) -> Answer:
        guard, timeline = self.session.live.guard, self.session.timeline
        self._assembly = assembly
        with_memory = self._given.put_into(assembly) if self._given is not None else assembly
        return await guard.answer(
            self.stubs, with_memory, timeline, self._budget, prompted=self._prompted, pinned=self._pinned
        )


def signature(instance: EngineInstance, live: LiveSession, answer: Answer) -> str:
    """Stands for what must not change within an epoch beside the messages."""
    addition = answer.system_prompt_addition or ""
    return f"{instance.signature} {live.factor} {addition and digest(addition)}"


async def _chosen(instance: EngineInstance, session: Session, request: AssembleRequest) -> Assembly:
    """The engine's choice, if it is one of messages of this session.

    Raises:
        NonsenseAnswer: the engine answered something else.
    """
    assembly = checked_assembly(await instance.engine.assemble(session, request), request.budget)
    return await session.redeemed(assembly) if isinstance(session, OutsideSession) else assembly
