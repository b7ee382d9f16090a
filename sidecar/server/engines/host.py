"""What engines can ask of the host, and the models that write for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from msgspec import Raw

from sidecar.engine.calls import CompactOutcome, CompactRequest, IncomingMessage, IngestOutcome
from sidecar.engine.host import HostCapabilityMissing, HostRequestFailed
from sidecar.engine.session import Session
from sidecar.protocol.base import ABSENT
from sidecar.rpc.errors import RpcError
from sidecar.server.engines.session import own_session
from sidecar.server.log import about

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.engine.host import Report
    from sidecar.rpc.router import Call
    from sidecar.server.configuration.settings import Settings
    from sidecar.server.engines.session import EngineSession
    from sidecar.server.profile import Host
    from sidecar.summarize.contract import Summariser
    from sidecar.summarize.endpoint import EndpointModel
    from sidecar.summarize.host_model import Complete
    from sidecar.summarize.limits import CircuitBreaker, SpendGuard
    from sidecar.tokens.contract import TokenCounter


P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="BaseModel")

_tokens = count(1)

StoreMessage = Callable[["EngineSession", IncomingMessage], Awaitable[IngestOutcome]]
"""Stores one message; returns once it is durable."""

COMPLETION_TOKENS = 2000
"""Largest completion where an engine names no size."""

detachable: ContextVar[Call | None] = ContextVar("detachable", default=None)
"""The call that gives up its place in the session's queue once it waits for the host."""


class HostServices:
    """What one engine may use; see `sidecar.engine.host.EngineHost`."""

    def __init__(
        self,
        engine_id: str,
        settings: BaseModel | None,
        *,
        host: Host,
        models: Callable[[], Models],
        store: StoreMessage,
        compacted: Callable[[str], None],
        recall_share: float,
    ) -> None:
        """`models` are made when they are first used; `compacted` is told the ids of sessions."""
        self._host = host
        self._models = models
        self._store = store
        self._compacted = compacted
        self._recall_share = recall_share
        self._engine_id = engine_id
        self._configured = settings
        self._settings = settings
        self._log = logging.getLogger(f"sidecar.engines.{engine_id}")
        self._summariser: Summariser | None = None

    @property
    def tokens(self) -> TokenCounter:
        """Counts text."""
        return self._models().counter

    @property
    def extractive(self) -> Summariser:
        """Summarises without a model, at once."""
        return self._models().extractive

    @property
    def summariser(self) -> Summariser:
        """Summarises with the host's model where it has one."""
        if self._summariser is None:
            self._summariser = self._models().summariser(self._completion)
        return self._summariser

    def summariser_within(self, guard: SpendGuard, breaker: CircuitBreaker) -> Summariser:
        """The same with bounds of the engine's own."""
        return self._models().summariser(self._completion, guard, breaker)

    @asynccontextmanager
    async def working(self, title: str) -> AsyncGenerator[Report]:
        """Progress of work that no request waits for."""
        from sidecar.rpc.peer import create_progress

        token = f"sidecar-{next(_tokens)}"
        supported = self._host.supports_progress
        progress = await create_progress(self._host.peer, token, supported=supported)
        progress.begin(title)
        try:
            yield lambda message, percentage: progress.report(message, percentage=percentage)
        finally:
            progress.end()

    def tell_compacted(self, session: Session) -> None:
        """Tell the host that a session was compacted without its asking."""
        extra = about(event="compaction", engine=self._engine_id, sessionId=session.session_id)
        self._log.info("compacted without being asked", extra=extra)
        self._compacted(session.session_id)

    @property
    def recall_share(self) -> float:
        """Share of a budget that may be recalled."""
        return self._recall_share

    @property
    def configured(self) -> BaseModel | None:
        """The engine's settings, `None` where nothing is configured."""
        return self._configured

    def settings(self, model: type[M]) -> M:
        """The engine's settings as an instance of its own model."""
        if self._settings is None:
            self._settings = model()
        return cast(M, self._settings)

    def has(self, capability: str) -> bool:
        """Whether the host answers this request."""
        return capability in self._host.capabilities

    async def store_message(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        """Store one message; returns once it is durable."""
        return await self._store(own_session(session), message)

    async def complete(
        self,
        purpose: str,
        messages: Sequence[tuple[str, str]],
        *,
        system_prompt: str | None = None,
        max_tokens: int | None = None,
        session: Session | None = None,
    ) -> str:
        """The text that the host's model gives."""
        from sidecar.protocol.runtime import CompleteRuntimeParams, CompleteRuntimeResult, PromptMessage

        params = CompleteRuntimeParams(
            purpose=cast(Any, purpose),
            messages=[PromptMessage(role=cast(Any, role), content=text) for role, text in messages],
            system_prompt=system_prompt,
            max_tokens=max_tokens or COMPLETION_TOKENS,
            session_id=session.session_id if session else _session_id_served(),
        )
        return (await self._ask("runtime/complete", params, CompleteRuntimeResult)).text

    async def delegate_compaction(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Let the runtime compact by its own means."""
        from sidecar.protocol.runtime import CompactRuntimeParams, CompactRuntimeResult

        handle = own_session(session)
        params = CompactRuntimeParams(
            session_id=session.session_id,
            session_key=handle.session_key,
            agent_id=session.agent_id,
            token_budget=request.budget,
            force=request.force or None,
            force_reason=request.force_reason,
            current_token_count=request.current_token_count,
            compaction_target=request.target,
            custom_instructions=request.custom_instructions,
        )
        try:
            result = await self._ask("runtime/compact", params, CompactRuntimeResult)
        except HostRequestFailed as error:
            return CompactOutcome(ok=False, compacted=False, reason=str(error))
        done = result.result
        return CompactOutcome(
            ok=result.ok,
            compacted=result.compacted,
            reason=result.reason,
            summary=done.summary if done else None,
            first_kept_message_id=done.first_kept_message_id if done else None,
            tokens_before=done.tokens_before if done else 0,
            tokens_after=done.tokens_after if done else None,
            details=bytes(done.details) if done and done.details else None,
        )

    async def run_blocking(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of blocking work, done in a worker thread."""
        return await asyncio.to_thread(work, *args, **kwargs)

    def log(self, level: str, message: str) -> None:
        """A line in the sidecar's log."""
        self._log.log(getattr(logging, level.upper(), logging.INFO), "%s", message)

    async def _completion(
        self, purpose: str, messages: Sequence[tuple[str, str]], system_prompt: str, max_tokens: int
    ) -> str:
        """By the configured model, else by the host's; neither holds the session meanwhile."""
        if (model := self._models().endpoint) is not None:
            if (call := detachable.get()) is not None:
                call.release_lane()
            return await model(purpose, messages, system_prompt, max_tokens)
        return await self.complete(purpose, messages, system_prompt=system_prompt, max_tokens=max_tokens)

    async def _ask(self, method: str, params: object, result_type: type[T]) -> T:
        if not self.has(method):
            raise HostCapabilityMissing(method)
        call = detachable.get()
        if call is not None:
            call.release_lane()
        try:
            return await self._host.ask(method, params, result_type)
        except RpcError as error:
            raise HostRequestFailed(error.message) from error


def _session_id_served() -> str | None:
    """The session on whose behalf the host is asked, as far as the running call tells."""
    call = detachable.get()
    return getattr(call.params, "session_id", None) if call is not None else None


def raw_or_absent(value: bytes | None) -> Raw:
    """Bytes of JSON as an optional member."""
    return Raw(value) if value else ABSENT


class Models:
    """What there is to ask; each part is made when it is first used."""

    def __init__(self, settings: Settings, host_capabilities: frozenset[str], counter: TokenCounter) -> None:
        self._settings = settings
        self.counter = counter
        self.exist = settings.model is not None or "runtime/complete" in host_capabilities
        """Whether there is a model to ask: a configured one, or the host's."""

    @cached_property
    def extractive(self) -> Summariser:
        """The summariser that needs no model."""
        from sidecar.summarize.deterministic import DeterministicSummariser

        return DeterministicSummariser(self.counter)

    @cached_property
    def bounds(self) -> tuple[SpendGuard, CircuitBreaker]:
        """One bound on calls to the host's model, whichever engine makes them."""
        from sidecar.summarize.limits import CircuitBreaker, SpendGuard

        return SpendGuard(), CircuitBreaker()

    @cached_property
    def endpoint(self) -> EndpointModel | None:
        """The model behind the configured endpoint, `None` where none is configured."""
        model = self._settings.model
        if model is None:
            return None
        from sidecar.summarize.endpoint import EndpointModel, EndpointSettings
        from sidecar.summarize.limits import CircuitBreaker

        settings = EndpointSettings(
            base_url=model.base_url,
            model=model.name,
            api_key=model.api_key,
            timeout_seconds=model.timeout_ms / 1000,
            retries=model.retries,
            most_calls=model.max_calls,
            window_seconds=model.window_ms / 1000,
        )
        return EndpointModel(settings, breaker=CircuitBreaker(open_seconds=model.pause_ms / 1000))

    def summariser(
        self,
        complete: Complete,
        guard: SpendGuard | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> Summariser:
        """The best summariser there is: by a model (`complete`) where there is one.

        `guard` and `breaker` bound its calls; without them they are bounded for all engines together.
        """
        if not self.exist:
            return self.extractive
        model = self.endpoint
        from sidecar.summarize.host_model import SECONDS_FOR_A_CALL, HostModelSummariser

        bounds = self.bounds
        return HostModelSummariser(
            complete,
            self.counter,
            self.extractive,
            guard=guard or bounds[0],
            breaker=breaker or bounds[1],
            model=model.settings.model if model else "",
            timeout_seconds=model.settings.timeout_seconds + 1 if model else SECONDS_FOR_A_CALL,
        )

    async def close(self) -> None:
        """Close what is connected."""
        if (model := self.__dict__.get("endpoint")) is not None:
            await model.close()
