"""`memory/register`, `memory/unregister`, `memory/compile`."""

from __future__ import annotations

from sidecar.engine.host import HostCapabilityMissing
from sidecar.memory.framing import framed
from sidecar.protocol.memory import (
    CompileMemoryParams,
    CompileMemoryResult,
    RegisterMemoryParams,
    RegisterMemoryResult,
    UnregisterMemoryParams,
    UnregisterMemoryResult,
)
from sidecar.rpc.call import Call
from sidecar.rpc.router import Order, Router
from sidecar.server.engines import LEGACY
from sidecar.server.memory.compiling import told
from sidecar.server.memory.on_demand import compile_on_demand
from sidecar.server.sidecar import Sidecar

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
        if CAPABILITY not in self._sidecar.host_capabilities:
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
            live = await sidecar.sessions.open(params.session_id, params.agent_id)
            injects = (await sidecar.seats.of(params.session_id, params.agent_id)).id == LEGACY
        name, made = await compile_on_demand(memory, sidecar, live, params, injects=injects)
        text = framed(name, made.body)
        count = live.count if live else sidecar.counter.count
        return CompileMemoryResult(
            final_content=text,
            tokens=count(text) if text else 0,
            synthesized=made.synthesized,
            fragments=told(made),
        )
