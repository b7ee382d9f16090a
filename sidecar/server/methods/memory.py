"""`memory/*`: the host's own sources, and compiling memory on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidecar.engine.host import HostCapabilityMissing
from sidecar.engine.signature import digest
from sidecar.memory.coordinator import framed
from sidecar.memory.record import MemoryRecord, decoded
from sidecar.messages.identity import own_words
from sidecar.messages.marks import Marks
from sidecar.messages.text import fold
from sidecar.protocol.memory import (
    CompileMemoryParams,
    CompileMemoryResult,
    RegisterMemoryParams,
    RegisterMemoryResult,
    UnregisterMemoryParams,
    UnregisterMemoryResult,
)
from sidecar.rpc.router import Call, Order, Router
from sidecar.server.engines.instance import LEGACY
from sidecar.server.sessions.live import MEMORY, LiveSession
from sidecar.server.sessions.memory import SessionMemory, injection_of, told
from sidecar.server.sidecar import Sidecar
from sidecar.store.errors import SessionTaken

if TYPE_CHECKING:
    from sidecar.memory.coordinator import Compilation, Wrap


CAPABILITY = "memory/getContext"


def register(router: Router, sidecar: Sidecar) -> None:
    """Serve the methods around memory."""
    handlers = MemoryHandlers(sidecar)
    router.request("memory/register", RegisterMemoryParams, handlers.register)
    router.request("memory/unregister", UnregisterMemoryParams, handlers.unregister)
    router.request(
        "memory/compile",
        CompileMemoryParams,
        handlers.compile,
        order=Order.EXCLUSIVE,
        lane=lambda params: params.session_id,
    )


class MemoryHandlers:
    """Lets the host be a source, and compiles on demand."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    def register(self, params: RegisterMemoryParams, call: Call) -> RegisterMemoryResult:
        """Ask the host from now on.

        Raises:
            HostCapabilityMissing: it has not declared that it answers.
        """
        del call
        if CAPABILITY not in self._sidecar.host.capabilities:
            raise HostCapabilityMissing(CAPABILITY)
        points = list(dict.fromkeys(params.injection_points))
        self._sidecar.use_memory().sources.register(params.name, points, params.token_budget)
        return RegisterMemoryResult(registered=True)

    def unregister(self, params: UnregisterMemoryParams, call: Call) -> UnregisterMemoryResult:
        """Ask the host no longer."""
        del call
        memory = self._sidecar.memory
        return UnregisterMemoryResult(
            unregistered=memory is not None and memory.sources.unregister(params.name)
        )

    async def compile(self, params: CompileMemoryParams, call: Call) -> CompileMemoryResult:
        """Ask all sources, and make one text of it."""
        del call
        sidecar = self._sidecar
        memory = sidecar.use_memory()
        live = None
        injects = False
        if params.session_id is not None:
            injects = (await sidecar.engines.of(params.session_id, params.agent_id)).id == LEGACY
            live = await self._session(params.session_id, params.agent_id, injects=injects)
        name, made = await compile_on_demand(memory, sidecar, live, params, injects=injects)
        text = framed(name, made.body, wrapping(sidecar, live))
        count = live.count if live else sidecar.counter.count
        return CompileMemoryResult(
            final_content=text,
            tokens=count(text) if text else 0,
            synthesized=made.synthesized,
            fragments=told(made),
        )

    async def _session(self, session_id: str, agent_id: str, *, injects: bool) -> LiveSession | None:
        """The session that counts as told, `None` where it is not there for the agent."""
        sessions = self._sidecar.sessions
        try:
            live = await (sessions.open if injects else sessions.look)(session_id, agent_id)
        except SessionTaken:
            return None
        return None if live.gone else live


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
    words = own_words(params.prompt or "", live.marks.ours(params.prompt or "", "user") if live else ())
    about = f"{params.injection_point} {digest(fold(words))}"
    record = decoded(await live.state(MEMORY)) if live else MemoryRecord()
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
    wrap = wrapping(sidecar, live)
    count = live.count if live else sidecar.counter.count
    made = await memory.compiler.compile(sources, answers, request, count, is_known, name=name, wrap=wrap)
    if live and injects:
        turn = START if start else MESSAGE
        record.turns = [i for i in record.turns if i.turn != turn]
        record.turns.append(injection_of(made, turn, about, name))
        await live.save_state(MEMORY, record.encoded())
    return name, made


def wrapping(sidecar: Sidecar, live: LiveSession | None) -> Wrap:
    """Puts memory into its fence: for a session, or for any of the namespace where none is named."""
    return live.marks.wrap if live else Marks(sidecar.store.secrets, sidecar.host.ref("").root).wrap


async def _end_others(memory: SessionMemory, live: LiveSession, record: MemoryRecord, about: str) -> None:
    """What was compiled for other words of the user counts as injected: the host has gone on."""
    point = about.partition(" ")[0]
    others = [i for i in record.turns if i.prompt != about and i.prompt.startswith(point) and not i.ended]
    for injection in others:
        injection.ended = True
        for item in injection.items:
            await memory.buffer.add_injected_id(live.ref.session_id, item.key)
