"""A memory source that lives in the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sidecar.memory.contract import Fragment, InjectionPoint, MemoryRequest
from sidecar.protocol.memory import GetContextMemoryParams, GetContextMemoryResult

if TYPE_CHECKING:
    from sidecar.rpc.peer import Peer


class HostSource:
    """Asks the host by `memory/getContext`."""

    def __init__(self, name: str, points: Sequence[InjectionPoint], peer: Peer, limit_ms: int) -> None:
        self.name = name
        self.injection_points = points
        self._peer = peer
        self._limit_ms = limit_ms

    async def get_context(self, request: MemoryRequest) -> list[Fragment]:
        """As `MemorySource.get_context`.

        Raises:
            RpcError: the host answers with an error, or not in time.
        """
        params = GetContextMemoryParams(
            name=self.name,
            agent_id=request.agent_id,
            injection_point=request.injection_point,
            session_id=request.session_id,
            session_key=request.session_key,
            prompt=request.prompt,
        )
        answer = await self._peer.request(
            "memory/getContext", params, GetContextMemoryResult, timeout_ms=self._limit_ms
        )
        return [
            Fragment(
                id=fragment.id,
                content=fragment.content,
                tokens=fragment.tokens,
                priority=fragment.priority,
                label=fragment.label,
                synthesize=fragment.synthesize is not False,
            )
            for fragment in answer.fragments
        ]
