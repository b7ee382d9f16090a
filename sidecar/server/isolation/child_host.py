"""What the sidecar offers an engine that runs in a process of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

import msgspec
from msgspec import Raw

from sidecar.engine.calls import CompactOutcome, CompactRequest, IncomingMessage, IngestOutcome
from sidecar.engine.host import HostCapabilityMissing, HostRequestFailed
from sidecar.engine.session import Session
from sidecar.protocol import errors as codes
from sidecar.rpc.errors import RemoteError, RequestTimedOut
from sidecar.server.isolation.wire import Compacted, Completion, HostRequest, Text

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.engine.host import Report
    from sidecar.rpc.peer import Peer
    from sidecar.server.isolation.child_session import ChildSession
    from sidecar.summarize.contract import Summariser
    from sidecar.summarize.limits import CircuitBreaker, SpendGuard
    from sidecar.tokens.contract import TokenCounter

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="BaseModel")

serving: ContextVar[int] = ContextVar("serving", default=0)
"""The handle of the session for which the engine is working."""


class ChildHost:
    """The services behind `engine.host`; see `sidecar.engine.host.EngineHost`."""

    def __init__(
        self,
        peer: Peer,
        engine_id: str,
        capabilities: frozenset[str],
        counter: TokenCounter,
        settings: BaseModel | None,
    ) -> None:
        self._peer = peer
        self._capabilities = capabilities
        self._counter = counter
        self._configured = settings
        self._settings = settings
        self._extractive: Summariser | None = None
        self._summariser: Summariser | None = None
        self._log = logging.getLogger(f"sidecar.engines.{engine_id}")

    @property
    def tokens(self) -> TokenCounter:
        """Counts text."""
        return self._counter

    @property
    def extractive(self) -> Summariser:
        """Summarises without a model, at once."""
        if self._extractive is None:
            from sidecar.summarize.deterministic import DeterministicSummariser

            self._extractive = DeterministicSummariser(self._counter)
        return self._extractive

    @property
    def summariser(self) -> Summariser:
        """Summarises with the host's model where it has one."""
        if not self.has("runtime/complete"):
            return self.extractive
        if self._summariser is None:
            from sidecar.summarize.host_model import HostModelSummariser

            self._summariser = HostModelSummariser(self._completion, self._counter, self.extractive)
        return self._summariser

    def summariser_within(self, guard: SpendGuard, breaker: CircuitBreaker) -> Summariser:
        """The same with bounds of the engine's own."""
        if not self.has("runtime/complete"):
            return self.extractive
        from sidecar.summarize.host_model import HostModelSummariser

        return HostModelSummariser(
            self._completion, self._counter, self.extractive, guard=guard, breaker=breaker
        )

    @asynccontextmanager
    async def working(self, title: str) -> AsyncGenerator[Report]:
        """Progress of work that no request waits for, which goes to the log."""
        self.log("info", title)
        yield lambda message, _: self.log("debug", f"{title}: {message}")

    def tell_compacted(self, session: Session) -> None:
        """Tell the host that a session was compacted without its asking."""
        self._peer.notify("session/compacted", Compacted(cast("ChildSession", session).handle))

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
        return capability in self._capabilities

    async def store_message(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        """Store one message; returns once it is durable."""
        return await self._ask("session/store", session, message, IngestOutcome)

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
        if not self.has("runtime/complete"):
            raise HostCapabilityMissing("runtime/complete")
        handle = cast("ChildSession", session).handle if session is not None else serving.get()
        params = Completion(handle, purpose, list(messages), system_prompt, max_tokens)
        try:
            return (await self._peer.request("runtime/complete", params, Text, timeout_ms=0)).text or ""
        except (RemoteError, RequestTimedOut) as error:
            raise HostRequestFailed(error.message) from error

    async def delegate_compaction(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Let the runtime compact by its own means."""
        if not self.has("runtime/compact"):
            raise HostCapabilityMissing("runtime/compact")
        return await self._ask("runtime/compact", session, request, CompactOutcome)

    async def run_blocking(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of blocking work, done in a worker thread."""
        return await asyncio.to_thread(work, *args, **kwargs)

    def log(self, level: str, message: str) -> None:
        """A line in the sidecar's log."""
        self._log.log(getattr(logging, level.upper(), logging.INFO), "%s", message)

    async def _completion(
        self, purpose: str, messages: Sequence[tuple[str, str]], system_prompt: str, max_tokens: int
    ) -> str:
        return await self.complete(purpose, messages, system_prompt=system_prompt, max_tokens=max_tokens)

    async def _ask(self, method: str, session: Session, request: object, result: type[T]) -> T:
        handle = cast("ChildSession", session).handle
        params = HostRequest(handle, Raw(msgspec.json.encode(request)))
        try:
            return await self._peer.request(method, params, result, timeout_ms=0)
        except RemoteError as error:
            if error.code == codes.HOST_CAPABILITY_MISSING:
                raise HostCapabilityMissing(str(error.data.get("capability"))) from None
            raise
