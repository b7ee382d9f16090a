"""Has an engine choose what to send, and makes its choice safe."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import structs

from sidecar.engine.calls import AssembleRequest, Assembly
from sidecar.engine.guard.answer import Answer
from sidecar.engine.guard.pinned import Pin
from sidecar.engine.session import Session
from sidecar.engine.signature import digest
from sidecar.engine.window import newest_that_fits
from sidecar.server.answer_checks import checked_assembly
from sidecar.server.engine_session import EngineSession
from sidecar.server.lending import LentSession
from sidecar.server.seat import Seat
from sidecar.server.sessions.live import LiveSession
from sidecar.server.sessions.pins import find_pins
from sidecar.server.sessions.pruning import prune_ahead, prune_answer, restore
from sidecar.server.sessions.stubs import keep_stubs, show_stubs
from sidecar.server.sidecar import Sidecar
from sidecar.server.standing_in import asked

if TYPE_CHECKING:
    from sidecar.server.memory.session_memory import Given

Ask = Callable[[AssembleRequest], Awaitable[Answer]]


class Chooser:
    """Asks engines on behalf of `context/assemble`."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def answer(
        self,
        seat: Seat,
        session: EngineSession,
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
        guard, timeline, budget = session.live.guard, session.timeline, request.budget
        await show_stubs(session, seat.engine.payload_tokens)
        room = budget - (given.tokens if given is not None else 0)
        pins, _ = await find_pins(session.live, timeline)
        if changed := await restore(session, pins, seat.signature):
            pins, _ = await find_pins(session.live, timeline)
        changed |= await guard.shrink_minimum(timeline, room, prompted=prompted)
        pinned = await guard.room_for(pins, timeline, room, prompted=prompted)

        async def ask(asked: AssembleRequest) -> Answer:
            assembly = await self.choice(seat, session, asked, given)
            return await guard.answer(assembly, timeline, budget, prompted=prompted, pinned=pinned)

        request = structs.replace(request, budget=max(room - pinned.tokens, 0))
        answer, pruned = await self._pruned(seat, session, request, pins, ask)
        changed |= pruned
        changed |= guard.stubs.add(slot.entry for slot in answer.fitted.slots if slot.entry)
        if guard.stubs.grown:
            guard.stubs.forget_all_but(slot.entry for slot in answer.fitted.slots if slot.entry)
        if changed or guard.stubs.grown:
            await keep_stubs(session)
        return answer

    async def choice(
        self, seat: Seat, session: EngineSession, request: AssembleRequest, given: Given | None = None
    ) -> Assembly:
        """What the engine chooses, or what stands in for it where it fails, with `given` in it.

        Raises:
            EngineFailed: it fails, and no stand-in is wanted.
        """
        work = _chosen(seat, seat.lend(session), request)
        assembly, stood_in = await asked(
            self._sidecar,
            seat,
            "context/assemble",
            work,
            session.session_id,
            lambda: newest_that_fits(session.timeline, request.budget),
        )
        session.live.failure = stood_in or session.live.failure
        return assembly if given is None else given.put_into(assembly)

    async def _pruned(
        self,
        seat: Seat,
        session: EngineSession,
        request: AssembleRequest,
        pins: list[Pin],
        ask: Ask,
    ) -> tuple[Answer, bool]:
        """The answer, after old results gave way where an epoch begins anyway, and whether any did."""
        rules, live = self._sidecar.settings.pruning, session.live
        spared = {entry.message_id for pin in pins for entry in pin.entries}
        prunes = rules.enabled and not seat.shortens_results
        ahead = prunes and await prune_ahead(session, rules, request.budget, spared)
        answer = await ask(request)
        if answer.fitted.excess:
            # What the guard leaves out comes back next time; an engine's own cut stays where it is.
            answer = await ask(structs.replace(request, budget=max(request.budget - answer.fitted.excess, 0)))
        if not prunes or ahead:
            return answer, ahead
        begins = (await live.continuity()).begins(answer.messages, signature(seat, live, answer))
        if begins and prune_answer(session, rules, answer, request.budget, spared):
            return await ask(request), True
        return answer, False


def signature(seat: Seat, live: LiveSession, answer: Answer) -> str:
    """Stands for what must not change within an epoch beside the messages."""
    addition = answer.system_prompt_addition or ""
    return f"{seat.signature} {live.factor} {addition and digest(addition)}"


async def _chosen(seat: Seat, session: Session, request: AssembleRequest) -> Assembly:
    """The engine's choice, if it is one of messages of this session.

    Raises:
        NonsenseAnswer: the engine answered something else.
    """
    assembly = checked_assembly(await seat.engine.assemble(session, request), request.budget)
    return await session.redeemed(assembly) if isinstance(session, LentSession) else assembly
