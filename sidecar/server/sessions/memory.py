"""The memory of sessions: what is injected, compiled and forgotten."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from msgspec import structs

from sidecar.engine.calls import Assembly, Kept, Made
from sidecar.engine.session import Timeline
from sidecar.engine.signature import digest
from sidecar.memory.contract import InjectionPoint, MemoryRequest
from sidecar.memory.coordinator import Asked, Compilation, Coordinator, IsKnown, Wrap, framed, mark_of
from sidecar.memory.events import STATE as EVENTS
from sidecar.memory.events import added, event_of
from sidecar.memory.record import Injection, Item, MemoryRecord, decoded, key_in
from sidecar.messages.identity import own_words, says
from sidecar.messages.text import fold
from sidecar.protocol.memory import CompiledFragment, ContextInjectedMemoryParams
from sidecar.protocol.runtime import CompleteRuntimeParams, CompleteRuntimeResult, PromptMessage
from sidecar.protocol.times import format_rfc3339
from sidecar.server.sessions.live import MEMORY
from sidecar.server.sessions.memory_sources import SourceList, SourceParts
from sidecar.store import open_buffer
from sidecar.store.writes import SaveState, Write

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sidecar.engine.guard.answer import Answer
    from sidecar.memory.coordinator import Answer as SourceAnswer
    from sidecar.memory.coordinator import Complete
    from sidecar.protocol.assemble import AssembleContextParams
    from sidecar.server.configuration.settings import Settings
    from sidecar.server.engines.host import Models
    from sidecar.server.sessions.live import LiveSession
    from sidecar.store.buffer import BufferStore, HoldsBuffers
    from sidecar.store.contract import SessionStore


BUFFER = "memory"
"""Name under which injected ids are kept."""
DEFAULT_AGENT = "default"
"""The agent of sessions for which the host names none."""
LARGEST_SHARE = 4
"""No compilation gets more than this part of a budget."""
MOST_SHARE = 2
"""Memory that takes more than this part of a budget is left out."""


class AskedTurn(NamedTuple):
    """The turn that the model is about to answer."""

    number: int
    words: str
    """What the user says in it."""

    @property
    def prompt(self) -> str:
        """Stands for the words, whatever a host puts around them."""
        return digest(fold(self.words))


async def asked_turn(timeline: Timeline, prompt: str | None, ours: Collection[str] = ()) -> AskedTurn:
    """The newest turn of the timeline, or the one that `prompt` is about to open behind it.

    The parts of the prompt that are in `ours` are left out of the words.
    """
    newest = (await timeline.tail(0)).entries
    if not newest:
        return AskedTurn(1, own_words(prompt or "", ours))
    last = newest[-1]
    opener = await timeline.opener(last.turn)
    if prompt:
        answered = last.role == "assistant" and not last.reading.calls
        if opener is None or answered or not says(opener.reading, prompt, ours):
            begun = last.turn > 1 or last.role != "system"
            return AskedTurn(last.turn + begun, own_words(prompt, ours))
    return AskedTurn(last.turn, own_words(opener.reading.text, opener.reading.ours) if opener else "")


def beside(assembly: Assembly, start: str, turn: str) -> Assembly:
    """The answer with texts behind its own additions to the system prompt and to the user's message."""
    return structs.replace(
        assembly,
        system_prompt_addition=_joined(assembly.system_prompt_addition, start),
        user_message_append=_joined(assembly.user_message_append, turn),
    )


def inside(assembly: Assembly, placed: Mapping[int, Injection], current: int) -> Assembly:
    """The answer with a message in front of the opener of each turn that was given memory.

    That of the `current` turn comes last where the host is going to add the opener itself.
    """
    items: list[Kept | Made] = []
    waiting = dict(placed)
    for item in assembly.items:
        if isinstance(item, Kept) and item.entry.turn in waiting and item.entry.opens_turn:
            items.append(_made(waiting.pop(item.entry.turn)))
        items.append(item)
    if current in waiting:
        items.append(_made(waiting[current]))
    return structs.replace(assembly, items=items)


def framed_injection(injection: Injection | None, wrap: Wrap) -> str:
    """What was injected, within its fence; empty where there is nothing."""
    return framed(injection.name, injection.body, wrap) if injection else ""


def placed_turns(items: Sequence[Made], placed: Mapping[int, Injection]) -> set[int]:
    """The turns whose memory is among these messages."""
    refs = {item.ref for item in items if item.kind == "memory"}
    return {turn for turn, i in placed.items() if mark_of(i.name, i.body).ref in refs}


def _made(injection: Injection) -> Made:
    return Made(
        role="user",
        kind="memory",
        ref=mark_of(injection.name, injection.body).ref,
        text=injection.body,
        timestamp_ms=injection.compiled_ms,
        lasting=True,
    )


def _joined(first: str | None, second: str) -> str | None:
    return "\n\n".join(text for text in (first, second) if text) or None


class Given(NamedTuple):
    """The memory of one answer."""

    view: str
    """Id of the view that it is for."""
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
    wrap: Wrap
    """Puts a text into its fence."""
    left_out: bool = False
    """True where there is no room for it."""

    def put_into(self, assembly: Assembly) -> Assembly:
        """An engine's answer with the memory in it."""
        if self.left_out:
            return assembly
        if not self.in_list:
            return beside(assembly, self.start, framed_injection(self.message, self.wrap))
        placed = {i.turn: i for i in self.record.of(self.view) if i.body}
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

    def __init__(self, parts: SourceParts, settings: Settings, models: Models) -> None:
        self._settings = settings.memory
        self.sources = SourceList(parts, settings)
        self.compiler = Compiler(parts, settings, models)
        self.buffer = injected_ids(parts.store, parts.host.namespace)
        self.compacted: set[str] = set()
        """Sessions that an engine has compacted in the background since they were last given memory."""

    async def give(
        self, live: LiveSession, view: str, timeline: Timeline, params: AssembleContextParams, budget: int
    ) -> Given:
        """The memory for one answer of a view, of `budget` tokens; compiled where this turn has none yet."""
        turn = await asked_turn(timeline, params.prompt, live.marks.ours(params.prompt or "", "user"))
        record = decoded(await live.state(MEMORY))
        before = record.encoded()
        if live.ref.session_id in self.compacted:
            self.compacted.discard(live.ref.session_id)
            record.start = None
        ended, free = record.begin(turn.number, turn.prompt, view)
        views = {kept.id for kept in (await live.continuity()).record.views}
        free += record.forget_views_but({*views, view})
        await self._count(live, ended, free)
        await self._compile_missing(live, record, view, turn, params, budget)
        if record.encoded() != before:
            await live.save_state(MEMORY, record.encoded())
        return self._given(live, record, view, turn, budget)

    async def settle(self, live: LiveSession, given: Given, answer: Answer) -> None:
        """Take in what of the memory has got into an answer."""
        record, turn = given.record, given.turn
        before = record.encoded()
        made = [slot.made for slot in answer.fitted.slots if slot.made]
        if given.in_list:
            in_context = placed_turns(made, {i.turn: i for i in record.of(given.view) if i.body})
            shown = turn.number in in_context
        else:
            in_context = {s.entry.turn for s in answer.fitted.slots if s.entry and s.entry.opens_turn}
            shown = answer.user_message_append is not None and not given.left_out
        if given.message is not None and given.message.body and not shown:
            record.withdraw(given.message)
        free = record.evict(in_context, turn.number, given.view)
        await self._count(live, [], free)
        if record.encoded() != before:
            await live.save_state(MEMORY, record.encoded())

    async def end_turn(self, live: LiveSession) -> None:
        """Take in that the host has finished a turn: what was injected in it counts from now on."""
        kept = await live.state(MEMORY)
        record = decoded(kept)
        ended = record.end()
        if ended:
            await self._count(live, ended, [])
            await live.save_state(MEMORY, record.encoded())

    async def is_known(self, live: LiveSession, record: MemoryRecord, view: str, key: str) -> bool:
        """Whether an item is in a view's context already, as far as that is known."""
        if key in record.known_in(view):
            return True
        session_id = live.ref.session_id
        in_view = await self.buffer.has_injected_id(session_id, key_in(view, key))
        return in_view or await self.buffer.has_injected_id(session_id, key)

    def request(
        self, point: InjectionPoint, agent_id: str | None, budget: int, **about: str | None
    ) -> MemoryRequest:
        """What sources are asked; an agent always has a name of its own."""
        return MemoryRequest(agent_id or DEFAULT_AGENT, point, budget, **about)

    async def _compile_missing(
        self,
        live: LiveSession,
        record: MemoryRecord,
        view: str,
        turn: AskedTurn,
        params: AssembleContextParams,
        budget: int,
    ) -> None:
        """Compile what this turn is to be given and was not yet; all sources are asked at once."""
        points: list[InjectionPoint] = []
        if record.start is None and self.sources.at("session-start"):
            points.append("session-start")
        if record.of_turn(turn.number, turn.prompt, view) is None and self.sources.at("per-message"):
            points.append("per-message")
        if not points:
            return
        most = min(self._settings.total_token_budget, budget // LARGEST_SHARE)
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
                asked,
                said,
                request,
                live.count,
                partial(self.is_known, live, record, view),
                name=name,
                wrap=live.marks.wrap,
            )
            if start:
                record.start = injection_of(made, 0, "", name)
            else:
                record.turns.append(injection_of(made, turn.number, turn.prompt, name, view))

    def _given(
        self, live: LiveSession, record: MemoryRecord, view: str, turn: AskedTurn, budget: int
    ) -> Given:
        in_list = self._settings.placement == "message"
        message = record.of_turn(turn.number, turn.prompt, view)
        wrap = live.marks.wrap
        start = framed_injection(record.start, wrap)
        listed = [i for i in record.of(view) if i.body] if in_list else [message] if message else []
        tokens = _tokens([start, *(framed_injection(one, wrap) for one in listed)], live.count)
        given = Given(view, turn, record, start, message, in_list, tokens, wrap)
        return given.without() if tokens > budget // MOST_SHARE else given

    async def _count(self, live: LiveSession, ended: Sequence[str], free: Sequence[str]) -> None:
        """Note items as injected, and others as free again."""
        session_id = live.ref.session_id
        await asyncio.gather(*(self.buffer.add_injected_id(session_id, key) for key in ended))
        if free:
            await self.buffer.clear_injected_ids(session_id, free)


def injected_ids(store: SessionStore, namespace: str) -> BufferStore:
    """The durable set of what was injected into sessions."""
    return open_buffer(cast("HoldsBuffers", store), namespace, BUFFER)


def injection_of(made: Compilation, turn: int, prompt: str, name: str, view: str = "") -> Injection:
    """What is kept of a compilation."""
    items = [
        Item(c.source, c.fragment.id, c.key, c.tokens, c.fragment.content)
        for c in (verdict.candidate for verdict in made.verdicts if verdict.included)
    ]
    return Injection(turn, prompt, name, made.body, items, int(time.time() * 1000), view=view)


def _tokens(texts: Iterable[str], count: Callable[[str], int]) -> int:
    return sum(count(text) for text in texts if text)


class Compiler:
    """One for a connection."""

    def __init__(self, parts: SourceParts, settings: Settings, models: Models) -> None:
        self._host = parts.host
        self._store = parts.store
        self._settings = settings
        self._models = models
        self._coordinator = Coordinator(source_timeout_ms=settings.memory.source_timeout_ms)

    async def ask(self, sources: Sequence[Asked], request: MemoryRequest) -> list[SourceAnswer]:
        """The answers of the sources, within their time limit."""
        return await self._coordinator.ask(sources, request)

    async def compile(
        self,
        sources: Sequence[Asked],
        answers: Sequence[SourceAnswer],
        request: MemoryRequest,
        count: Callable[[str], int],
        is_known: IsKnown,
        *,
        name: str,
        wrap: Wrap,
        keep: bool = True,
    ) -> Compilation:
        """What is to be injected under this name, in the fence that `wrap` makes.

        The host has been told when this returns.
        """
        limits = self._settings.limits
        made = await self._coordinator.compile(
            sources,
            answers,
            request,
            count,
            is_known,
            complete=self._complete(request),
            complete_seconds=limits.host_request_timeout_ms / 1000,
        )
        now_ms = int(time.time() * 1000)
        text = framed(name, made.body, wrap)
        fragments = told(made)
        if fragments:
            self._host.peer.notify(
                "memory/contextInjected",
                ContextInjectedMemoryParams(
                    agent_id=request.agent_id,
                    injection_point=request.injection_point,
                    fragments=fragments,
                    synthesized=made.synthesized,
                    final_content=text,
                    timestamp=format_rfc3339(now_ms),
                    session_id=request.session_id,
                ),
            )
        if keep and request.session_id is not None:
            event = event_of(
                made,
                timestamp_ms=now_ms,
                agent_id=request.agent_id,
                point=request.injection_point,
                budget=request.token_budget,
                tokens=count(text) if text else 0,
            )
            store, ref = self._store, self._host.ref(request.session_id)
            store.submit(SaveState(ref, EVENTS, added(await store.state(ref, EVENTS), event)), _passed_over)
        return made

    def _complete(self, request: MemoryRequest) -> Complete | None:
        """Asks a model to merge fragments, where that is wanted: the configured one, or the host's."""
        if not self._settings.memory.enable_synthesis:
            return None
        if (model := self._models.endpoint) is not None:
            return partial(model, "synthesis")
        if "runtime/complete" not in self._host.capabilities:
            return None
        return partial(self._completion, request.session_id)

    async def _completion(
        self,
        session_id: str | None,
        messages: Sequence[tuple[str, str]],
        system_prompt: str,
        max_tokens: int,
    ) -> str:
        params = CompleteRuntimeParams(
            purpose="synthesis",
            messages=[PromptMessage(role="user", content=text) for _, text in messages],
            system_prompt=system_prompt,
            max_tokens=max_tokens,
            model=self._settings.memory.synthesis_model,
            session_id=session_id,
        )
        return (await self._host.ask("runtime/complete", params, CompleteRuntimeResult)).text


def told(made: Compilation) -> list[CompiledFragment]:
    """The fragments of a compilation in the words of the protocol."""
    return [
        CompiledFragment(
            plugin_name=verdict.candidate.source,
            content=verdict.candidate.fragment.content,
            tokens=verdict.candidate.tokens,
            priority=verdict.candidate.priority,
            included=verdict.included,
        )
        for verdict in made.verdicts
    ]


def _passed_over(write: Write) -> None:
    """An event that is lost does no harm."""
    del write


async def forget_injections(live: LiveSession, views: Collection[str]) -> None:
    """Clear what counts as injected into these views; what the open turn was given stays with it."""
    kept = await live.state(MEMORY)
    if kept is None:
        return
    record = decoded(kept)
    record.compact(views)
    buffer, session_id = injected_ids(live.store, live.ref.namespace), live.ref.session_id
    await buffer.clear_injected_ids(session_id)
    for key in {key for injection in record.turns if injection.ended for key in injection.keys}:
        await buffer.add_injected_id(session_id, key)
    await live.save_state(MEMORY, record.encoded())
