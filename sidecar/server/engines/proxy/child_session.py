"""The session and the host that an engine sees in its own process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import msgspec
from msgspec import Raw, json

from sidecar.engine.calls import CompactOutcome, CompactRequest, IncomingMessage, IngestOutcome
from sidecar.engine.guard.pinned import Pin
from sidecar.engine.host import HostCapabilityMissing, HostRequestFailed
from sidecar.engine.session import Session, Tail
from sidecar.protocol import errors as codes
from sidecar.rpc.errors import RemoteError, RequestTimedOut
from sidecar.server.engines.proxy.wire import (
    Ask,
    BodyMissing,
    Compacted,
    Completion,
    Entries,
    HostRequest,
    Pins,
    Report,
    SessionFacts,
    Spawned,
    Summaries,
    Text,
    Unpacker,
    Value,
    Verdict,
)
from sidecar.store.search import SearchResult

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sidecar.engine.entry import Entry
    from sidecar.engine.host import Report as EngineReport
    from sidecar.engine.session import SpawnedSession, View
    from sidecar.rpc.peer import Peer
    from sidecar.store.search import SearchQuery
    from sidecar.store.stored import SummaryNode
    from sidecar.summarize.contract import Summariser
    from sidecar.summarize.limits import CircuitBreaker, SpendGuard
    from sidecar.tokens.contract import TokenCounter


T = TypeVar("T")

REPORTS = 200
"""Reports of progress that one call passes on; of an engine that makes more, the rest is not heard."""

M = TypeVar("M", bound="BaseModel")

P = ParamSpec("P")
serving: ContextVar[int] = ContextVar("serving", default=0)
"""The handle of the session for which the engine is working."""


class Line:
    """Asks the sidecar about one session, for as long as a call lasts."""

    def __init__(self, peer: Peer, facts: SessionFacts, unpacker: Unpacker) -> None:
        self._peer = peer
        self.facts = facts
        """What the sidecar told of the session."""
        self._unpacker = unpacker

    async def ask(self, method: str, result: type[T], **members: Any) -> T:
        """The sidecar's answer."""
        return await self._peer.request(method, Ask(self.facts.handle, **members), result, timeout_ms=0)

    async def entries(self, method: str, **members: Any) -> Tail:
        """A piece of the session, bodies that are not kept here asked for again."""
        found = await self.ask(method, Entries, **members)
        try:
            return Tail(self._unpacker.unpack(self.facts.session_id, found.entries), found.whole)
        except BodyMissing:
            found = await self.ask(method, Entries, again=True, **members)
            return Tail(self._unpacker.unpack(self.facts.session_id, found.entries), found.whole)

    async def send(self, method: str, request: object, result: type[T]) -> T:
        """The sidecar's answer to a request that is more than members of `Ask`."""
        params = HostRequest(self.facts.handle, Raw(json.encode(request)))
        return await self._peer.request(method, params, result, timeout_ms=0)

    def report(self, message: str, percentage: int | None) -> None:
        """Tell the sidecar how far the engine has come."""
        self._peer.notify("session/progress", Report(message[:200], self.facts.handle, percentage))


class ChildTimeline:
    """The session's messages; see `sidecar.engine.session.Timeline`."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def tail(self, tokens: int) -> Tail:
        """The newest entries, going back until they hold more than `tokens` tokens."""
        return await self._line.entries("timeline/tail", tokens=min(int(tokens), 1 << 60))

    async def opener(self, turn: int) -> Entry | None:
        """The user message that opened a turn."""
        found = (await self._line.entries("timeline/opener", turn=turn)).entries
        return found[0] if found else None

    async def system(self) -> list[Entry]:
        """The system messages of the whole timeline."""
        return (await self._line.entries("timeline/system")).entries

    async def resolve(self, message_id: str) -> str | None:
        """The id that a message has on the timeline now."""
        return (await self._line.ask("timeline/resolve", Text, message_id=message_id)).text

    async def before(self, message_id: str, limit: int, since: str | None = None) -> list[Entry]:
        """The `limit` entries in front of a message."""
        asked = await self._line.entries("timeline/before", message_id=message_id, limit=limit, since=since)
        return asked.entries


class ChildHistory:
    """The session's stored messages; see `sidecar.engine.session.History`."""

    def __init__(self, line: Line) -> None:
        self._line = line

    @property
    def version(self) -> str:
        """Another one whenever stored messages change in another way than by appending."""
        return self._line.facts.history_version

    @property
    def count(self) -> int:
        """How many messages are stored."""
        return self._line.facts.history_count

    async def read(self, first: int, last: int) -> list[Entry]:
        """The entries at positions `first` to `last`."""
        return (await self._line.entries("history/read", first=first, last=last)).entries

    async def search(self, query: SearchQuery) -> SearchResult:
        """The stored messages that match."""
        return await self._line.send("session/search", query, SearchResult)


class ChildSession:
    """A session for the length of one call; see `sidecar.engine.session.Session`."""

    def __init__(self, line: Line, counter: TokenCounter) -> None:
        self._line = line
        self._counter = counter
        self._reports = 0
        self._report: EngineReport | None = None
        self.timeline = ChildTimeline(line)
        self.history = ChildHistory(line)

    @property
    def handle(self) -> int:
        """Names the session towards the sidecar for as long as the call lasts."""
        return self._line.facts.handle

    @property
    def session_id(self) -> str:
        """The host's key of the session."""
        return self._line.facts.session_id

    @property
    def view(self) -> View | None:
        """The view that the call is about."""
        return self._line.facts.view

    @property
    def agent_id(self) -> str | None:
        """The agent that owns the session."""
        return self._line.facts.agent_id

    def calibrated(self, tokens: int) -> int:
        """What so many tokens of our own count in a budget."""
        return ceil(tokens * self._line.facts.factor)

    def count(self, text: str) -> int:
        """Tokens of a text as the budget counts them."""
        return self.calibrated(self._counter.count(text))

    async def state(self, name: str) -> bytes | None:
        """A value that this engine kept for the session."""
        return (await self._line.ask("state/get", Value, name=name)).value

    async def save_state(self, name: str, value: bytes | None) -> None:
        """Keep a small value durably."""
        await self._line.ask("state/save", Verdict, name=name, value=value)

    async def summaries(self) -> list[SummaryNode]:
        """The session's summaries by first position."""
        return (await self._line.ask("summaries/list", Summaries)).nodes

    async def summary_nodes(self, node_ids: Sequence[str]) -> list[SummaryNode]:
        """The summaries of these ids."""
        wanted = set(node_ids)
        return [node for node in await self.summaries() if node.node_id in wanted]

    async def pins(self) -> list[Pin]:
        """What is pinned."""
        told = (await self._line.ask("session/pins", Pins)).pins
        entries = iter((await self._line.entries("session/pinned")).entries)
        return [
            Pin(pin_id=pin.pin_id, entries=list(islice(entries, pin.entries)), made=pin.made) for pin in told
        ]

    def report_to(self, report: EngineReport) -> None:
        """Let `progress` go there from now on."""
        self._report = report

    async def add_summary(self, node: SummaryNode, replaces: Sequence[str] = ()) -> bool:
        """Keep a summary in place of others; false where the history changed since the call began."""
        return (await self._line.ask("summaries/add", Verdict, node=node, replaces=list(replaces))).ok

    async def spawn(self) -> SpawnedSession | None:
        """How the session was spawned by another one."""
        return (await self._line.ask("session/spawn", Spawned)).spawn

    def progress(self, message: str, percentage: int | None = None) -> None:
        """Report progress to the host, if it asked for it."""
        self._reports += 1
        if self._report is not None:
            self._report(message, percentage)
        elif self._reports <= REPORTS:
            self._line.report(message, percentage)


class ChildHost:
    """The services behind `engine.host`; see `sidecar.engine.host.EngineHost`."""

    def __init__(
        self,
        peer: Peer,
        engine_id: str,
        capabilities: frozenset[str],
        counter: TokenCounter,
        settings: BaseModel | None,
        recall_share: float,
    ) -> None:
        self._peer = peer
        self.recall_share = recall_share
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
    async def working(self, title: str) -> AsyncGenerator[EngineReport]:
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
