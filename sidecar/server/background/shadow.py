"""Runs a second engine in the shadow of the first, and compares what each would have sent."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import Struct, field, structs

from sidecar.engine.calls import AfterTurnRequest, IngestOutcome
from sidecar.messages.contract import Dialect, MessageError
from sidecar.protocol.assemble import AssembleContextParams, AssembleContextResult
from sidecar.protocol.context import (
    AfterTurnContextParams,
    CompactContextParams,
    CompactContextResult,
    MaintainContextParams,
)
from sidecar.protocol.engine import ShadowReport, ShadowSide
from sidecar.protocol.session import DeleteSessionParams
from sidecar.rpc.errors import RpcError
from sidecar.server.configuration.settings import (
    ExemptionSettings,
    MemorySettings,
    RetentionSettings,
    ShadowSettings,
)
from sidecar.server.engines.answer_checks import Raised, contained, described
from sidecar.server.engines.session import EngineSession
from sidecar.server.engines.statistics import MethodFigures
from sidecar.server.failures import EngineUnavailable
from sidecar.server.log import about
from sidecar.server.methods.assemble import AssembleHandlers
from sidecar.server.methods.compact import CompactHandlers
from sidecar.server.profile import Host
from sidecar.server.sessions.intake import incoming
from sidecar.server.sessions.live import EPOCH, VIEW_STATES
from sidecar.server.sessions.pruning import show_stubs
from sidecar.server.sidecar import Sidecar
from sidecar.store.contract import SessionStore
from sidecar.store.stored import (
    Appended,
    SessionHead,
    SessionRef,
    SessionSettings,
    SessionSnapshot,
    SummaryNode,
)
from sidecar.store.writes import AddSummary, Append, AppendResult, SaveState, Write
from sidecar.summarize.limits import CircuitBreaker

if TYPE_CHECKING:
    from sidecar.protocol.context import SessionParams
    from sidecar.rpc.peer import Peer
    from sidecar.rpc.router import Call
    from sidecar.server.engines.instance import EngineInstance


REMEMBERED_SESSIONS = 256
"""Sessions whose newest answers are known, so that the next one's prefix can be measured."""

Print = tuple[int, int]
"""Stands for one message: its hash, its bytes."""

KEPT_SESSIONS = 256
"""Sessions whose values and summaries are remembered; of others a shadow begins anew."""
_UNSET = SessionSettings(None, None)
OWN = ("engine.", EPOCH, VIEW_STATES)
"""Beginnings of the names of values that a shadow has for itself; the others it reads as they are."""
MOST_SHOWN = 500
"""Messages that an engine which takes them in itself is shown before one call, the newest."""
Params = AssembleContextParams | CompactContextParams | MaintainContextParams | AfterTurnContextParams
MOST_BYTES = 32 << 20
"""Bytes of requests that wait."""
FAILURES_IN_A_ROW = 5
PAUSE_S = 60.0
"""How long the engine is left alone after so many failures in a row."""
_QUIET_S = 0.02
"""So long no request may have been worked on before the shadow is asked anything."""

_log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """One engine's answer to a request."""

    messages: Sequence[bytes]
    tokens: int
    seconds: float


class Side(Struct):
    """What is known of the answers of one of the two."""

    calls: MethodFigures = field(default_factory=MethodFigures)
    before_bytes: int = 0
    kept_bytes: int = 0
    invalid: int = 0

    def take(self, answer: Answer, prints: Sequence[Print], before: Sequence[Print], *, valid: bool) -> None:
        """Take in an answer, and what of the one before it its beginning still is."""
        self.calls.took(answer.seconds, failed=False)
        self.calls.tokens += answer.tokens
        self.invalid += not valid
        for old, new in zip(before, prints, strict=False):
            if old != new:
                break
            self.kept_bytes += old[1]
        self.before_bytes += sum(size for _, size in before)

    def failed(self, seconds: float) -> None:
        """Take in that there was no answer."""
        self.calls.took(seconds, failed=True)

    def described(self, engine_id: str) -> ShadowSide:
        """All of it as it is told."""
        calls = self.calls
        answers = calls.count - calls.errors
        return ShadowSide(
            engine=engine_id,
            answers=answers,
            failures=calls.errors,
            invalid=self.invalid,
            mean_tokens=calls.tokens // answers if answers else 0,
            prefix_kept=round(self.kept_bytes / self.before_bytes, 4) if self.before_bytes else None,
            p50_ms=round(calls.percentile(0.5), 1),
            p95_ms=round(calls.percentile(0.95), 1),
        )


class Comparison:
    """The figures of both, over all sessions."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.primary = Side()
        self.shadow = Side()
        self.compared = 0
        self._sent_bytes = 0
        self._covered_bytes = 0
        self._before: OrderedDict[str, tuple[list[Print], list[Print]]] = OrderedDict()

    @property
    def coverage(self) -> float | None:
        """The share of what the primary sends that the shadow sends too, word for word, by bytes."""
        return round(self._covered_bytes / self._sent_bytes, 4) if self._sent_bytes else None

    def take(self, session_id: str, primary: Answer, shadow: Answer) -> None:
        """Take in two answers to one request."""
        ours, theirs = _prints(primary.messages), _prints(shadow.messages)
        before = self._before.get(session_id, ([], []))
        self.primary.take(primary, ours, before[0], valid=self._valid(primary.messages))
        self.shadow.take(shadow, theirs, before[1], valid=self._valid(shadow.messages))
        also = set(theirs)
        self._sent_bytes += sum(size for _, size in ours)
        self._covered_bytes += sum(each[1] for each in ours if each in also)
        self.compared += 1
        self._before[session_id] = ours, theirs
        self._before.move_to_end(session_id)
        if len(self._before) > REMEMBERED_SESSIONS:
            self._before.popitem(last=False)

    def _valid(self, messages: Sequence[bytes]) -> bool:
        """Whether a provider would take the list."""
        try:
            return not self._dialect.check([self._dialect.read(message) for message in messages])
        except MessageError:
            return False


def _prints(messages: Sequence[bytes]) -> list[Print]:
    return [(hash(message), len(message)) for message in messages]


class _Written(Struct):
    uid: int | None = None
    values: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    nodes: dict[str, SummaryNode] = field(default_factory=dict[str, SummaryNode])


class OverlayStore:
    """See `sidecar.store.contract.SessionStore`; what is not here is asked of the store below."""

    def __init__(self, below: SessionStore) -> None:
        self._below = below
        self._sessions: OrderedDict[SessionRef, _Written] = OrderedDict()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._below, name)

    async def close(self) -> None:
        """Forget everything; the store below stays open."""
        self._sessions.clear()

    def submit(self, write: Write, done: Callable[[Any], None]) -> None:
        """Take a write, or pass over it."""
        task = asyncio.ensure_future(self.write(write))
        task.add_done_callback(lambda _: done(write))

    def withdraw(self, write: Write) -> bool:
        """A write cannot be taken back."""
        del write
        return False

    async def write(self, write: Write) -> Any:
        """What the write would have come to."""
        write.error = None
        match write:
            case SaveState():
                self._of(write.ref).values[write.name] = write.value
                write.result = None
            case AddSummary():
                head = await self.session(write.ref)
                write.result = head is not None and head.revision == write.revision
                if write.result:
                    nodes = self._of(write.ref).nodes
                    for replaced in write.replaces:
                        nodes.pop(replaced, None)
                    nodes[write.node.node_id] = write.node
            case Append():
                write.result = await self._appended(write)
            case _:
                write.result = None
        return write.result

    async def snapshot(self, ref: SessionRef, agent_id: str | None = None) -> SessionSnapshot:
        """What is below without values of engines, with what was written here."""
        below = await self._below.snapshot(ref, agent_id)
        self._follow(ref, below.head)
        written = self._sessions.get(ref)
        values = {name: value for name, value in below.values.items() if not name.startswith(OWN)}
        for name, value in (written.values if written is not None else {}).items():
            values.pop(name, None)
            if value is not None:
                values[name] = value
        return below._replace(own=_UNSET, waiting=_UNSET, agents=_UNSET, values=values)

    async def session(self, ref: SessionRef) -> SessionHead | None:
        """The head below; what was written for another session of that name is forgotten."""
        head = await self._below.session(ref)
        self._follow(ref, head)
        return head

    def _follow(self, ref: SessionRef, head: SessionHead | None) -> None:
        written = self._sessions.get(ref)
        if written is not None and head is not None:
            if written.uid not in (None, head.uid):
                del self._sessions[ref]
            else:
                written.uid = head.uid

    async def state(self, ref: SessionRef, name: str) -> bytes | None:
        """A value that was written here, else one below that is not of engines."""
        written = self._sessions.get(ref)
        if written is not None and name in written.values:
            return written.values[name]
        return None if name.startswith(OWN) else await self._below.state(ref, name)

    async def settings(self, namespace: str, scope: str, scope_id: str) -> SessionSettings:
        """Nothing: the same engine serves all sessions."""
        del namespace, scope, scope_id
        return _UNSET

    async def summaries(self, ref: SessionRef) -> list[SummaryNode]:
        """The summaries that were written here."""
        written = self._sessions.get(ref)
        nodes = written.nodes.values() if written is not None else ()
        return sorted(nodes, key=lambda node: (node.first_position, node.depth))

    async def summary_nodes(self, ref: SessionRef, node_ids: Sequence[str]) -> list[SummaryNode]:
        """Those of these ids."""
        wanted = set(node_ids)
        return [node for node in await self.summaries(ref) if node.node_id in wanted]

    async def _appended(self, write: Append) -> AppendResult:
        """What the store below has already of the messages, as if it had been stored now."""
        head = await self._below.session(write.ref)
        items: list[Appended] = []
        for message in write.messages:
            known = await self._below.message(write.ref, message.message_id) if message.message_id else None
            place, turn_id = (known.position, known.turn_id) if known else (0, message.turn_id or "t1")
            items.append(Appended(message.message_id or "", turn_id, place, True, None))
        return AppendResult(items, False, head or _nobody(write))

    def _of(self, ref: SessionRef) -> _Written:
        written = self._sessions.setdefault(ref, _Written())
        self._sessions.move_to_end(ref)
        if len(self._sessions) > KEPT_SESSIONS:
            self._sessions.popitem(last=False)
        return written


def _nobody(write: Append) -> SessionHead:
    """The head of a session that is not there."""
    return SessionHead(
        ref=write.ref,
        uid=0,
        agent_id=write.agent_id,
        session_key=write.session_key,
        message_format=write.message_format,
        message_count=0,
        turn_count=0,
        revision=0,
        created_ms=0,
        updated_ms=0,
    )


class SilentPeer:
    """The connection of a sidecar that has no host; see `sidecar.rpc.peer.Peer`."""

    in_flight = 0

    def lane_in_use(self, key: str) -> bool:
        """Whether requests wait in a lane: never."""
        del key
        return False

    def notify(self, method: str, params: object = None) -> None:
        """Say nothing."""
        del method, params


class Double:
    """The parts of the second sidecar that its requests go through."""

    def __init__(self, primary: Sidecar, settings: ShadowSettings) -> None:
        own = structs.replace(
            primary.settings,
            engine=settings.engine,
            on_engine_failure="fail",
            shadow=None,
            memory=MemorySettings(),
            episodes=None,
            model=None,
            retention=RetentionSettings(),
            exemptions=ExemptionSettings(),
            limits=structs.replace(
                primary.settings.limits,
                engine_timeout_ms=settings.timeout_ms,
                cache_bytes=primary.settings.limits.cache_bytes // 4,
            ),
        )
        host = Host(
            cast("Peer", SilentPeer()),
            namespace=primary.host.namespace,
            message_format=primary.host.message_format,
            capabilities=frozenset(),
            timeout_ms=primary.settings.limits.host_request_timeout_ms,
        )
        store = cast("SessionStore", OverlayStore(primary.store))
        self.sidecar = Sidecar(own, store, host)
        self.sidecar.counter = primary.counter
        self._shown: dict[str, int] = {}

    async def prepare(self, params: SessionParams) -> None:
        """Show the engine the messages that it has not seen, if it wants to see messages at all."""
        instance, session = await self._session(params)
        live = session.live
        if instance.stores or live.head is None:
            return
        count = live.head.message_count
        first = max(self._shown.get(params.session_id, 0), count - MOST_SHOWN) + 1
        for message in await live.store.messages(live.ref, first, count):
            work = instance.engine.ingest(instance.session_for(session.another()), incoming(message))
            await self.sidecar.runner.run(
                instance, "context/ingest", work, params.session_id, result=IngestOutcome
            )
            self._shown[params.session_id] = message.position

    async def after_turn(self, params: AfterTurnContextParams) -> None:
        """Let the engine react to a turn; its messages are stored already."""
        instance, session = await self._session(params)
        if not instance.has("after_turn") or session.live.head is None:
            return
        for view, budget in await session.live.to_act_on(params.token_budget) or [(None, None)]:
            session = session.another()
            if view is not None:
                session.about(view, instance.engine.shared_state)
            await show_stubs(session, instance.engine.payload_tokens)
            request = AfterTurnRequest(
                budget=budget,
                heartbeat=bool(params.is_heartbeat),
                auto_compaction_summary=params.auto_compaction_summary,
            )
            work = instance.engine.after_turn(instance.session_for(session), request)
            await self.sidecar.runner.run(instance, "context/afterTurn", work, params.session_id)

    def forget(self, session_id: str) -> None:
        """Let go of a session that is deleted."""
        self._shown.pop(session_id, None)
        self.sidecar.sessions.forget(session_id)

    async def _session(self, params: SessionParams) -> tuple[EngineInstance, EngineSession]:
        sidecar = self.sidecar
        instance = await sidecar.engines.of(params.session_id, params.agent_id)
        live = await sidecar.sessions.open(params.session_id, params.agent_id)
        return instance, EngineSession(live, live.stored_timeline(), instance.id, agent_id=params.agent_id)


class Job(NamedTuple):
    """A request that the primary has answered."""

    params: Params
    size: int
    messages: Sequence[bytes] = ()
    """The primary's answer, where it is one to compare."""
    tokens: int = 0
    seconds: float = 0.0
    state: tuple[int, int] | None = None
    """The session's length and revision when it was answered."""


class Shadow:
    """Asks the second engine what the first one was asked, while there is nothing else to do."""

    def __init__(self, sidecar: Sidecar, settings: ShadowSettings) -> None:
        self._sidecar = sidecar
        self._settings = settings
        self._double = Double(sidecar, settings)
        self._assembling = AssembleHandlers(self._double.sidecar)
        self._compacting = CompactHandlers(self._double.sidecar)
        self._comparison = Comparison(sidecar.dialect)
        self._breaker = CircuitBreaker(FAILURES_IN_A_ROW, PAUSE_S)
        self._queue: deque[Job] = deque()
        self._bytes = 0
        self._dropped = 0
        self._outdated = 0
        self._working = False
        self._problem: str | None = None
        self._unavailable = False
        self._more = asyncio.Event()
        self._task = asyncio.ensure_future(self._work())

    def heard(self, call: Call, outcome: object, seconds: float) -> None:
        """A request was answered: put it into the queue, if the engine is to be asked too."""
        params = call.params
        if isinstance(outcome, RpcError) or self._unavailable:
            return
        if isinstance(params, DeleteSessionParams):
            self._double.forget(params.session_id)
            return
        if not isinstance(params, Params):
            return
        job = self._job(params, call.size, outcome, seconds)
        if job is None:
            return
        waits = self._breaker.is_waiting
        if waits or len(self._queue) >= self._settings.queue or self._bytes + job.size > MOST_BYTES:
            self._dropped += 1
            return
        self._queue.append(job)
        self._bytes += job.size
        self._more.set()

    def report(self) -> ShadowReport:
        """All that is known so far."""
        comparison = self._comparison
        return ShadowReport(
            primary=comparison.primary.described(self._sidecar.registry.default_id),
            shadow=comparison.shadow.described(self._settings.engine),
            compared=comparison.compared,
            coverage=comparison.coverage,
            waiting=len(self._queue) + self._working,
            dropped=self._dropped,
            outdated=self._outdated,
            problem=self._problem,
        )

    async def release(self) -> None:
        """Let go of the engine's instance; the next request makes a fresh one."""
        await self._double.sidecar.dispose_engines()

    async def close(self) -> None:
        """End the work and let go of the engine."""
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._double.sidecar.close()

    def _job(self, params: Params, size: int, outcome: object, seconds: float) -> Job | None:
        sidecar = self._sidecar
        exempt = sidecar.exempt
        if (
            exempt is not None
            and exempt.of(params.session_id, params.session_key, params.agent_id) is not None
        ):
            return None
        if isinstance(outcome, CompactContextResult):
            return Job(params, size) if outcome.compacted else None
        if not isinstance(outcome, AssembleContextResult):
            return Job(params, size)
        live = sidecar.sessions.cached(params.session_id)
        result = live.results.get(outcome.result_id) if live is not None else None
        if live is None or result is None or result.messages is None:
            return None
        state = (live.head.message_count, live.head.revision) if live.head else None
        return Job(params, size, result.messages, outcome.estimated_tokens, seconds, state)

    async def _work(self) -> None:
        while True:
            await self._more.wait()
            while self._queue:
                await self._quiet()
                job = self._queue.popleft()
                self._bytes -= job.size
                self._working = True
                try:
                    await self._do(job)
                finally:
                    self._working = False
            self._more.clear()

    async def _quiet(self) -> None:
        """Return once nothing has been worked on for a moment."""
        peer = self._sidecar.host.peer
        while True:
            idle = not peer.in_flight
            await asyncio.sleep(_QUIET_S)
            if idle and not peer.in_flight:
                return

    async def _do(self, job: Job) -> None:
        if not self._breaker.allows():
            self._dropped += 1
            return
        if await self._is_outdated(job):
            self._outdated += 1
            return
        began = perf_counter()
        outcome = await contained(self._asked(job))
        seconds = perf_counter() - began
        if isinstance(outcome, Raised):
            self._failed(outcome.error, seconds)
            return
        self._breaker.succeeded()
        self._problem = None
        if outcome is not None:
            if await self._is_outdated(job):
                self._outdated += 1
                return
            ours = Answer(job.messages, job.tokens, job.seconds)
            theirs = Answer(outcome[0], outcome[1], seconds)
            session_id = job.params.session_id
            # Reading thousands of messages takes a while, which must not be the loop's.
            await asyncio.to_thread(self._comparison.take, session_id, ours, theirs)

    async def _is_outdated(self, job: Job) -> bool:
        """Whether an answer now would be to another history than the primary's was."""
        if not isinstance(job.params, AssembleContextParams):
            return False
        head = await self._sidecar.store.session(self._sidecar.host.ref(job.params.session_id))
        return ((head.message_count, head.revision) if head else None) != job.state

    async def _asked(self, job: Job) -> tuple[Sequence[bytes], int] | None:
        """What the engine answers to the request, where it is one to compare."""
        call = cast("Call", None)
        await self._double.prepare(job.params)
        match job.params:
            case AssembleContextParams() as params:
                asked = structs.replace(params, previous_result_id=None, projection=None)
                answer = await self._assembling.assemble(asked, call)
                live = self._double.sidecar.sessions.cached(params.session_id)
                if live is not None:
                    # What the provider reports next is about the primary's answer.
                    live.sent = None
                return [bytes(message) for message in answer.messages or ()], answer.estimated_tokens
            case CompactContextParams() as params:
                await self._compacting.compact(structs.replace(params, work_done_token=None), call)
            case MaintainContextParams() as params:
                await self._compacting.maintain(structs.replace(params, work_done_token=None), call)
            case AfterTurnContextParams() as params:
                await self._double.after_turn(params)
        return None

    def _failed(self, error: BaseException, seconds: float) -> None:
        text = error.message if isinstance(error, RpcError) else described(error)
        self._unavailable = isinstance(error, EngineUnavailable)
        if isinstance(error, RpcError | EngineUnavailable):
            level, exc_info = logging.WARNING, None
        else:
            level, exc_info = logging.ERROR, error
        self._problem = text[:500]
        self._comparison.shadow.failed(seconds)
        self._breaker.failed()
        extra = about(event="shadowFailed", engine=self._settings.engine, ms=round(seconds * 1000, 1))
        _log.log(level, "the shadow did not answer: %s", text, extra=extra, exc_info=exc_info)
        if self._breaker.is_waiting:
            _log.warning("the shadow is left alone for %.0f s", PAUSE_S, extra=extra)
