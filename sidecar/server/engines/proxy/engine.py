"""An engine that runs in a process of its own, as the sidecar calls it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from msgspec import DecodeError, Raw, json

from sidecar.engine.calls import (
    AfterTurnRequest,
    AssembleRequest,
    Assembly,
    CompactOutcome,
    CompactRequest,
    IncomingMessage,
    IngestOutcome,
    Kept,
    Made,
    MaintainOutcome,
    PreflightOutcome,
)
from sidecar.engine.contract import ContextEngine, EngineInfo
from sidecar.engine.session import Session, SpawnedSession, SpawnEndReason
from sidecar.protocol import errors as codes
from sidecar.rpc.errors import InvalidResult, RemoteError
from sidecar.server.engines.answer_checks import NonsenseAnswer
from sidecar.server.engines.instance import declared
from sidecar.server.engines.proxy.process import EngineProcess, ProcessFailed, ProcessPlan
from sidecar.server.engines.proxy.wire import (
    AssemblyAnswer,
    EngineCall,
    MaintainRequest,
    Nothing,
    PrepareSpawnRequest,
    SessionFacts,
    SpawnEndedRequest,
    ToolAnswer,
    ToolCall,
    from_wire_error,
)
from sidecar.server.log import about
from sidecar.tools.contract import AgentTool, ArgumentError, ToolFailed, ToolOutcome, ToolSession

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidecar.server.engines.host import HostServices
    from sidecar.server.engines.proxy.wire import OwnTool
    from sidecar.server.engines.session import OutsideSession


T = TypeVar("T")

_log = logging.getLogger(__name__)

REPEATABLE = ("assemble", "preflight")
"""Members that change nothing, so that a call which another one has brought down is made again."""
CRASHES = 5
"""So many ends of the process within `CRASH_WINDOW_S` stop it from being started again for that long."""
CRASH_WINDOW_S = 60.0


class RemoteEngine(ContextEngine):
    """Hands every call over to the process, which is started again when it has ended."""

    info: ClassVar[EngineInfo]

    def __init__(self, host: HostServices, plan: ProcessPlan, process: EngineProcess) -> None:
        super().__init__(host)
        self.own_tools: Mapping[str, AgentTool] = {}
        """Tools that run in the process, by name; the others are the sidecar's own."""
        self._services = host
        self._plan = plan
        self._process = process
        self._starting: asyncio.Task[EngineProcess] | None = None
        self._ends: deque[float] = deque(maxlen=CRASHES)
        self._checks: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(cls, host: HostServices, plan: ProcessPlan) -> RemoteEngine:
        """An engine whose process has loaded it.

        Raises:
            EngineRefused: the engine does not load, or its settings are wrong.
            ProcessFailed: the process does not start, or ends again.
        """
        process = await EngineProcess.start(plan, host)
        told = process.description
        members = {"info": declared(process.info), "tools": told.tools, "shared_state": told.shared_state}
        kind = type("RemoteEngine", (cls,), members)
        engine = cast("type[RemoteEngine]", kind)(host, plan, process)
        try:
            engine.own_tools = remote_tools(engine, process.description.own_tools)
        except ProcessFailed:
            await engine.dispose()
            raise
        return engine

    @property
    def own_members(self) -> tuple[str, ...]:
        """Optional members that the engine has itself."""
        return tuple(self._process.description.own)

    @property
    def stores_plainly(self) -> bool:
        """True where messages need not be shown to the engine when they come in."""
        return self._process.description.stores

    @property
    def buffers(self) -> bool:
        """True where the engine's turns are buffered for a back end."""
        return self._process.description.buffers

    @property
    def shortens(self) -> bool:
        """True where the engine shortens old tool results itself."""
        return self._process.description.shortens

    @property
    def payload_tokens(self) -> int:
        """See `ContextEngine`."""
        return self._process.description.payload_tokens

    @property
    def grant_tokens(self) -> int:
        """See `ContextEngine`."""
        return self._process.description.grant_tokens

    @property
    def ends(self) -> int:
        """How often the process has ended unasked within the last minute."""
        now = time.monotonic()
        return sum(now - end < CRASH_WINDOW_S for end in self._ends)

    async def ingest(self, session: Session, message: IncomingMessage) -> IngestOutcome:
        """Take in one message."""
        return await self._call("ingest", session, message, IngestOutcome)

    async def assemble(self, session: Session, request: AssembleRequest) -> Assembly:
        """Choose what the model should see."""
        answer = await self._call("assemble", session, request, AssemblyAnswer)
        timeline = cast("OutsideSession", session).timeline
        items: list[Kept | Made] = []
        for item in answer.items:
            if item.made is not None:
                items.append(item.made)
            else:
                items.append(Kept(await timeline.redeem(item.id or ""), item.kind))
        return Assembly(
            items=items,
            system_prompt_addition=answer.system_prompt_addition,
            user_message_append=answer.user_message_append,
        )

    async def compact(self, session: Session, request: CompactRequest) -> CompactOutcome:
        """Make room."""
        return await self._call("compact", session, request, CompactOutcome)

    async def after_turn(self, session: Session, request: AfterTurnRequest) -> None:
        """React to a finished turn."""
        await self._call("afterTurn", session, request, Nothing)

    async def maintain(self, session: Session, budget: int | None) -> MaintainOutcome:
        """Background work between turns."""
        return await self._call("maintain", session, MaintainRequest(budget), MaintainOutcome)

    async def preflight(self, session: Session, request: AssembleRequest) -> PreflightOutcome:
        """Predict whether the next answer fits."""
        return await self._call("preflight", session, request, PreflightOutcome)

    async def prepare_spawn(self, parent: Session | None, spawn: SpawnedSession) -> None:
        """A session is about to be spawned."""
        await self._call("prepareSpawn", parent, PrepareSpawnRequest(spawn, parent is not None), Nothing)

    async def spawn_ended(self, spawn: SpawnedSession, reason: SpawnEndReason) -> None:
        """A spawned session has ended."""
        await self._call("subagentEnded", None, SpawnEndedRequest(spawn, reason), Nothing)

    async def call_tool(self, name: str, session: ToolSession, arguments: bytes) -> ToolAnswer:
        """Run one of its own tools."""
        process = await self._running()
        facts = process.tool_answering.open(session)
        try:
            call = ToolCall(facts, name, Raw(arguments))
            return await self._asked(process, "engine/callTool", call, ToolAnswer)
        except ProcessFailed:
            self._note_end()
            raise
        finally:
            process.tool_answering.close(facts.handle)

    async def dispose(self) -> None:
        """End the process."""
        if self._starting is not None:
            self._starting.cancel()
        for check in self._checks:
            check.cancel()
        await self._process.close()

    async def _call(self, member: str, session: Session | None, request: object, result: type[T]) -> T:
        process = await self._running()
        try:
            return await self._request(process, member, session, request, result)
        except ProcessFailed as error:
            self._note_end()
            if not ((process.condemned or error.untouched) and member in REPEATABLE):
                raise
        return await self._request(await self._running(), member, session, request, result)

    async def _request(
        self, process: EngineProcess, member: str, session: Session | None, request: object, result: type[T]
    ) -> T:
        answering = process.answering
        facts = answering.open(cast("OutsideSession", session)) if session else SessionFacts(0, "")
        try:
            call = EngineCall(facts, Raw(json.encode(request)))
            return await self._asked(process, f"engine/{member}", call, result)
        except ProcessFailed as error:
            error.untouched = not answering.was_asked(facts.handle)
            raise
        finally:
            answering.close(facts.handle)

    async def _asked(self, process: EngineProcess, method: str, call: object, result: type[T]) -> T:
        try:
            return await process.request(method, call, result)
        except RemoteError as error:
            if error.code == codes.REQUEST_CANCELLED:
                # Nobody here has cancelled it: the process is winding down.
                process.condemned = True
                process.kill()
                raise ProcessFailed("the engine's process was told to end while it worked") from None
            raise from_wire_error(error) or EngineProblem(error.message) from None
        except InvalidResult as error:
            raise NonsenseAnswer(error.message) from None
        except asyncio.CancelledError:
            self._check(process)
            raise

    async def _running(self) -> EngineProcess:
        """The process, started again where it has ended.

        Raises:
            ProcessFailed: it ends again and again.
        """
        if self._process.alive:
            return self._process
        if self._starting is None:
            if self.ends >= CRASHES:
                wait = CRASH_WINDOW_S - (time.monotonic() - self._ends[0])
                raise ProcessFailed(
                    f"the engine's process has ended {CRASHES} times within a minute and is started again "
                    f"in {wait:.0f} s"
                )
            self._starting = asyncio.create_task(self._restart())
        return await asyncio.shield(self._starting)

    async def _restart(self) -> EngineProcess:
        try:
            old, self._process = self._process, await EngineProcess.start(self._plan, self._services)
            await old.close()
            return self._process
        finally:
            self._starting = None

    def _note_end(self) -> None:
        self._ends.append(time.monotonic())
        if self.ends >= CRASHES:
            _log.warning(
                "the process of %s ends each time and is left alone for %.0f s",
                self.info.id,
                CRASH_WINDOW_S,
                extra=about(event="engineProcessPaused", engine=self.info.id),
            )

    def _check(self, process: EngineProcess) -> None:
        """A call was given up: see whether the process still answers, or is stuck."""
        if process.alive:
            check = asyncio.create_task(process.look_after())
            self._checks.add(check)
            check.add_done_callback(self._checks.discard)


class EngineProblem(Exception):
    """Raised when the engine raised in its process; the text is what it told."""


class RemoteTool:
    """One tool; see `sidecar.tools.contract.AgentTool`. It runs in the engine's process."""

    name: str
    description: str
    input_schema: bytes
    needs_model: bool

    def __init__(self, engine: RemoteEngine, told: OwnTool) -> None:
        self._engine = engine
        self.name = told.name
        self.description = told.description
        self.input_schema = told.input_schema.encode()
        self.needs_model = told.needs_model

    async def call(self, session: ToolSession, arguments: bytes) -> ToolOutcome:
        """What the tool answers.

        Raises:
            ArgumentError: the arguments do not fit.
            ToolFailed: it cannot do what was asked.
        """
        answer = await self._engine.call_tool(self.name, session, arguments)
        if answer.argument is not None:
            raise _argument_error(answer.text, answer.argument)
        if answer.failed:
            raise ToolFailed(answer.text)
        return ToolOutcome(answer.text, answer.structured)


def remote_tools(engine: RemoteEngine, told: list[OwnTool]) -> Mapping[str, AgentTool]:
    """The tools by name.

    Raises:
        ProcessFailed: a schema is no JSON object.
    """
    for tool in told:
        try:
            json.decode(tool.input_schema, type=dict[str, Any])
        except (DecodeError, RecursionError):
            raise ProcessFailed(
                f"the input_schema of the tool {tool.name[:100]!r} is no JSON object"
            ) from None
    return {tool.name: cast("AgentTool", RemoteTool(engine, tool)) for tool in told}


def _argument_error(text: str, argument: str) -> ArgumentError:
    error = ArgumentError(text)
    error.argument = argument
    return error
