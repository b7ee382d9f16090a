"""The `memory/*` requests."""

from __future__ import annotations

from collections.abc import Iterable

from sidecar.client.areas.requesting import Requesting
from sidecar.protocol.base import InjectionPoint
from sidecar.protocol.memory import (
    CompileMemoryParams,
    CompileMemoryResult,
    RegisterMemoryParams,
    RegisterMemoryResult,
    UnregisterMemoryParams,
    UnregisterMemoryResult,
)


class MemoryRequests(Requesting):
    """Memory sources of the host, and what is made of them."""

    async def register_memory(
        self, name: str, injection_points: Iterable[InjectionPoint], *, token_budget: int | None = None
    ) -> bool:
        """Offer a source, which `on_memory_context` answers for as long as the connection lives."""
        params = RegisterMemoryParams(
            name=name, injection_points=list(injection_points), token_budget=token_budget
        )
        return (await self.request("memory/register", params, RegisterMemoryResult)).registered

    async def unregister_memory(self, name: str) -> bool:
        """Withdraw a source; false where there was none of this name."""
        params = UnregisterMemoryParams(name=name)
        return (await self.request("memory/unregister", params, UnregisterMemoryResult)).unregistered

    async def compile_memory(
        self,
        agent_id: str,
        injection_point: InjectionPoint,
        *,
        session_id: str | None = None,
        prompt: str | None = None,
        token_budget: int | None = None,
    ) -> CompileMemoryResult:
        """Ask all sources, and get one text within the budget."""
        params = CompileMemoryParams(
            agent_id=agent_id,
            injection_point=injection_point,
            session_id=session_id,
            prompt=prompt,
            token_budget=token_budget,
        )
        return await self.request("memory/compile", params, CompileMemoryResult)
