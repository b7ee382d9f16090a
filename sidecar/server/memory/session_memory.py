"""The memory that sessions are given: compiled once a turn, kept, counted, given again, taken back."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple, cast

from sidecar.engine.calls import Assembly
from sidecar.engine.session import Timeline
from sidecar.memory.contract import InjectionPoint, MemoryRequest
from sidecar.memory.record import Injection, Item, MemoryRecord, decoded
from sidecar.server.memory.asked_turn import AskedTurn, asked_turn
from sidecar.server.memory.compiling import Compiler
from sidecar.server.memory.placing import beside, framed_injection, inside, placed_turns
from sidecar.server.memory.source_list import SourceList
from sidecar.server.sessions.live import MEMORY
from sidecar.store import open_buffer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sidecar.engine.guard.answer import Answer
    from sidecar.memory.coordinator import Compilation
    from sidecar.protocol.assembling import AssembleContextParams
    from sidecar.server.sessions.live import LiveSession
    from sidecar.server.sidecar import Sidecar
    from sidecar.store.buffer import BufferStore
    from sidecar.store.buffering import HoldsBuffers

STATE = MEMORY
"""Name of the value that holds a session's record."""
BUFFER = "memory"
"""Name under which injected ids are kept."""
DEFAULT_AGENT = "default"
"""The agent of sessions for which the host names none."""
LARGEST_SHARE = 4
"""No compilation gets more than this part of a budget."""
MOST_SHARE = 2
"""Memory that takes more than this part of a budget is left out."""


class Given(NamedTuple):
    """The memory of one answer."""

    turn: AskedTurn
    record: MemoryRecord
    start: str
    """Session-start memory within its fence."""
    message: Injection | None
    """What the turn was given."""
    in_list: bool
    """True where memory for messages stands in the list itself."""
    tokens: int
    """What all of it takes."""
    left_out: bool = False
    """True where there is no room for it."""

    def put_into(self, assembly: Assembly) -> Assembly:
        """An engine's answer with the memory in it."""
        if self.left_out:
            return assembly
        if not self.in_list:
            return beside(assembly, self.start, framed_injection(self.message))
        placed = {i.turn: i for i in self.record.turns if i.body}
        return inside(beside(assembly, self.start, ""), placed, self.turn.number)

    @property
    def injections(self) -> list[tuple[InjectionPoint, Injection]]:
        """What `context/explain` tells of."""
        if self.left_out:
            return []
        start, message = self.record.start, self.message
        found: list[tuple[InjectionPoint, Injection]] = [("session-start", start)] if start else []
        return [*found, ("per-message", message)] if message else found

    def without(self) -> Given:
        """No memory, since there is no room for it."""
        return self._replace(left_out=True, tokens=0)


class SessionMemory:
    """The memory of all sessions of one connection."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self.sources = SourceList(sidecar)
        self.compiler = Compiler(sidecar)
        self.buffer = injected_ids(sidecar)
        self.compacted: set[str] = set()
        """Sessions that an engine has compacted in the background since they were last given memory."""

    async def give(
        self, live: LiveSession, timeline: Timeline, params: AssembleContextParams, budget: int
    ) -> Given:
        """The memory for one answer of `budget` tokens; compiled where this turn has none yet."""
        turn = await asked_turn(timeline, params.prompt)
        record = decoded(await live.state(STATE))
        before = record.encoded()
        if live.ref.session_id in self.compacted:
            self.compacted.discard(live.ref.session_id)
            record.start = None
        ended, free = record.begin(turn.number, turn.prompt)
        await self._count(live, ended, free)
        await self._compile_missing(live, record, turn, params, budget)
        if record.encoded() != before:
            await live.save_state(STATE, record.encoded())
        return self._given(live, record, turn, budget)

    async def settle(self, live: LiveSession, given: Given, answer: Answer) -> None:
        """Take in what of the memory has got into an answer."""
        record, turn = given.record, given.turn
        before = record.encoded()
        made = [slot.made for slot in answer.fitted.slots if slot.made]
        if given.in_list:
            in_context = placed_turns(made, {i.turn: i for i in record.turns if i.body})
            shown = turn.number in in_context
        else:
            in_context = {s.entry.turn for s in answer.fitted.slots if s.entry and s.entry.opens_turn}
            shown = answer.user_message_append is not None and not given.left_out
        if given.message is not None and given.message.body and not shown:
            record.withdraw(given.message)
        free = record.evict(in_context, turn.number)
        await self._count(live, [], free)
        if record.encoded() != before:
            await live.save_state(STATE, record.encoded())

    async def end_turn(self, live: LiveSession) -> None:
        """Take in that the host has finished a turn: what was injected in it counts from now on."""
        kept = await live.state(STATE)
        record = decoded(kept)
        ended = record.end()
        if ended:
            await self._count(live, ended, [])
            await live.save_state(STATE, record.encoded())

    async def is_known(self, live: LiveSession, record: MemoryRecord, key: str) -> bool:
        """Whether an item is in the session's context already, as far as that is known."""
        injections = [*([record.start] if record.start else []), *record.turns]
        if any(item.key == key for injection in injections for item in injection.items):
            return True
        return await self.buffer.has_injected_id(live.ref.session_id, key)

    def request(
        self, point: InjectionPoint, agent_id: str | None, budget: int, **about: str | None
    ) -> MemoryRequest:
        """What sources are asked; an agent always has a name of its own."""
        return MemoryRequest(agent_id or DEFAULT_AGENT, point, budget, **about)

    async def _compile_missing(
        self,
        live: LiveSession,
        record: MemoryRecord,
        turn: AskedTurn,
        params: AssembleContextParams,
        budget: int,
    ) -> None:
        """Compile what this turn is to be given and was not yet; all sources are asked at once."""
        points: list[InjectionPoint] = []
        if record.start is None and self.sources.at("session-start"):
            points.append("session-start")
        if record.of_turn(turn.number, turn.prompt) is None and self.sources.at("per-message"):
            points.append("per-message")
        if not points:
            return
        most = min(self._sidecar.settings.memory.total_token_budget, budget // LARGEST_SHARE)
        agent_id = params.agent_id or (live.head.agent_id if live.head else None)
        requests = [
            self.request(
                point,
                agent_id,
                most,
                session_id=live.ref.session_id,
                session_key=params.session_key,
                prompt=turn.words or None,
                citations_mode=params.citations_mode,
            )
            for point in points
        ]
        sources = [self.sources.at(point) for point in points]
        answers = await asyncio.gather(*map(self.compiler.ask, sources, requests))
        for request, asked, said in zip(requests, sources, answers, strict=True):
            start = request.injection_point == "session-start"
            name = "start" if start else f"t{turn.number}"
            made = await self.compiler.compile(
                asked, said, request, live.count, lambda key: self.is_known(live, record, key), name=name
            )
            if start:
                record.start = injection_of(made, 0, "", name)
            else:
                record.turns.append(injection_of(made, turn.number, turn.prompt, name))

    def _given(self, live: LiveSession, record: MemoryRecord, turn: AskedTurn, budget: int) -> Given:
        in_list = self._sidecar.settings.memory.placement == "message"
        message = record.of_turn(turn.number, turn.prompt)
        start = framed_injection(record.start)
        listed = [i for i in record.turns if i.body] if in_list else [message] if message else []
        tokens = _tokens([start, *map(framed_injection, listed)], live.count)
        given = Given(turn, record, start, message, in_list, tokens)
        return given.without() if tokens > budget // MOST_SHARE else given

    async def _count(self, live: LiveSession, ended: Sequence[str], free: Sequence[str]) -> None:
        """Note items as injected, and others as free again."""
        session_id = live.ref.session_id
        await asyncio.gather(*(self.buffer.add_injected_id(session_id, key) for key in ended))
        if free:
            await self.buffer.clear_injected_ids(session_id, free)


def injected_ids(sidecar: Sidecar) -> BufferStore:
    """The durable set of what was injected into sessions."""
    return open_buffer(cast("HoldsBuffers", sidecar.store), sidecar.profile.namespace, BUFFER)


def injection_of(made: Compilation, turn: int, prompt: str, name: str) -> Injection:
    """What is kept of a compilation."""
    items = [
        Item(c.source, c.fragment.id, c.key, c.tokens, c.fragment.content)
        for c in (verdict.candidate for verdict in made.verdicts if verdict.included)
    ]
    return Injection(turn, prompt, name, made.body, items, int(time.time() * 1000))


def _tokens(texts: Iterable[str], count: Callable[[str], int]) -> int:
    return sum(count(text) for text in texts if text)
