"""Runs one compilation for a session or an agent, and tells the host and the store of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sidecar.memory.coordinator import Asked, Compilation, Coordinator, IsKnown
from sidecar.memory.events import STATE, added, event_of
from sidecar.memory.framing import framed
from sidecar.protocol.memory import CompiledFragment, ContextInjectedMemoryParams
from sidecar.protocol.runtime import CompleteRuntimeParams, CompleteRuntimeResult, PromptMessage
from sidecar.protocol.times import format_rfc3339
from sidecar.store.writes import SaveState, Write

if TYPE_CHECKING:
    from sidecar.memory.asking import Answer
    from sidecar.memory.contract import MemoryRequest
    from sidecar.memory.synthesis import Complete
    from sidecar.server.sidecar import Sidecar


class Compiler:
    """One for a connection."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._coordinator = Coordinator(source_timeout_ms=sidecar.settings.memory.source_timeout_ms)

    async def ask(self, sources: Sequence[Asked], request: MemoryRequest) -> list[Answer]:
        """The answers of the sources, within their time limit."""
        return await self._coordinator.ask(sources, request)

    async def compile(
        self,
        sources: Sequence[Asked],
        answers: Sequence[Answer],
        request: MemoryRequest,
        count: Callable[[str], int],
        is_known: IsKnown,
        *,
        name: str,
        keep: bool = True,
    ) -> Compilation:
        """What is to be injected under this name; the host has been told when this returns."""
        limits = self._sidecar.settings.limits
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
        text = framed(name, made.body)
        self._sidecar.peer.notify(
            "memory/contextInjected",
            ContextInjectedMemoryParams(
                agent_id=request.agent_id,
                injection_point=request.injection_point,
                fragments=told(made),
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
            store, ref = self._sidecar.store, self._sidecar.ref(request.session_id)
            store.submit(SaveState(ref, STATE, added(await store.state(ref, STATE), event)), _passed_over)
        return made

    def _complete(self, request: MemoryRequest) -> Complete | None:
        """Asks a model to merge fragments, where that is wanted: the configured one, or the host's."""
        if not self._sidecar.settings.memory.enable_synthesis:
            return None
        if (model := self._sidecar.models.endpoint) is not None:
            return partial(model, "synthesis")
        if "runtime/complete" not in self._sidecar.host_capabilities:
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
            model=self._sidecar.settings.memory.synthesis_model,
            session_id=session_id,
        )
        return (await self._sidecar.ask_host("runtime/complete", params, CompleteRuntimeResult)).text


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
