"""Compiles memory because the host asks for it, and injects it by its own means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidecar.engine.signature import digest
from sidecar.memory.record import MemoryRecord, decoded
from sidecar.messages.appended import own_words
from sidecar.messages.folding import fold
from sidecar.server.memory.session_memory import STATE, SessionMemory, injection_of

if TYPE_CHECKING:
    from sidecar.memory.coordinator import Compilation
    from sidecar.protocol.memory import CompileMemoryParams
    from sidecar.server.sessions.live import LiveSession
    from sidecar.server.sidecar import Sidecar

START, MESSAGE = -1, 0
"""Stand for the turn where the server numbers none: nothing of the session is stored."""


async def compile_on_demand(
    memory: SessionMemory,
    sidecar: Sidecar,
    live: LiveSession | None,
    params: CompileMemoryParams,
    *,
    injects: bool,
) -> tuple[str, Compilation]:
    """The name of a compilation, and what it has given.

    What counts as injected into the session is left out. `injects` says that `context/assemble` is not going
    to inject anything: then what is compiled here counts once the turn has ended, or another prompt comes.
    """
    words = own_words(params.prompt or "")
    about = f"{params.injection_point} {digest(fold(words))}"
    record = decoded(await live.state(STATE)) if live else MemoryRecord()
    if live and injects:
        await _end_others(memory, live, record, about)
    start = params.injection_point == "session-start"
    budget = params.token_budget or sidecar.settings.memory.total_token_budget
    request = memory.request(
        params.injection_point,
        params.agent_id,
        budget,
        session_id=params.session_id,
        prompt=params.prompt,
    )
    sources = memory.sources.at(params.injection_point)
    answers = await memory.compiler.ask(sources, request)

    async def is_known(key: str) -> bool:
        if live is None:
            return False
        if not start and record.start and any(item.key == key for item in record.start.items):
            return True
        return await memory.buffer.has_injected_id(live.ref.session_id, key)

    name = "start" if start else "message"
    count = live.count if live else sidecar.counter.count
    made = await memory.compiler.compile(sources, answers, request, count, is_known, name=name)
    if live and injects:
        turn = START if start else MESSAGE
        record.turns = [i for i in record.turns if i.turn != turn]
        record.turns.append(injection_of(made, turn, about, name))
        await live.save_state(STATE, record.encoded())
    return name, made


async def _end_others(memory: SessionMemory, live: LiveSession, record: MemoryRecord, about: str) -> None:
    """What was compiled for other words of the user counts as injected: the host has gone on."""
    point = about.partition(" ")[0]
    others = [i for i in record.turns if i.prompt != about and i.prompt.startswith(point) and not i.ended]
    for injection in others:
        injection.ended = True
        for item in injection.items:
            await memory.buffer.add_injected_id(live.ref.session_id, item.key)
