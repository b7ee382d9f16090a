"""One engine process, from its start to its end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec import Raw, Struct, json

from sidecar.client.child_process import ChildProcess
from sidecar.client.errors import SidecarNotStarted
from sidecar.import_path import absolute_path
from sidecar.protocol.base import ABSENT, MessageFormat
from sidecar.protocol.lifecycle import (
    LATEST,
    ContextEngineOptions,
    InitializationOptions,
    InitializedParams,
    InitializeParams,
    InitializeResult,
)
from sidecar.rpc.dispatch import PeerLimits
from sidecar.rpc.errors import ConnectionLost, InvalidResult, RemoteError, RequestTimedOut, RpcError
from sidecar.rpc.peer import Peer
from sidecar.rpc.stdio import StdioTransport
from sidecar.server.engines.proxy.callbacks import Answering, ToolAnswering
from sidecar.server.engines.proxy.confinement import environment, hide_memory
from sidecar.server.engines.proxy.wire import Description, EngineSettings, Nothing
from sidecar.server.failures import to_rpc_error
from sidecar.server.log import CHILD, CHILD_LINE, about, level_in_force

if TYPE_CHECKING:
    from sidecar.engine.sources import Found
    from sidecar.protocol.base import EngineInfo
    from sidecar.rpc.router import Call
    from sidecar.server.engines.host import HostServices


T = TypeVar("T")

START_MS = 60_000
CLOSE_MS = 1_000
PING_MS = 5_000
"""How long a process may take to answer at all after a call was given up, before it is ended."""
IN_FLIGHT = 1 << 16
"""Calls that may run at once; a batch is handed over message by message, all of which wait for the last."""
STDERR_PAUSE_S = 0.05

LINES_A_SECOND = 40

_log = logging.getLogger(__name__)


class ProcessFailed(Exception):
    """Raised when a process cannot be started, or has ended; the text tells what happened."""

    untouched = False
    """True where the process ended before it did anything for the call."""


class EngineRefused(Exception):
    """Raised when the process cannot load or configure its engine; the text says what to fix."""


class ProcessPlan(Struct, frozen=True, kw_only=True):
    """What a process is started with."""

    found: Found
    python: str
    """The Python that runs the engine."""
    config: Mapping[str, Any]
    """Settings of the engine, not validated yet."""
    memory_limit_mb: int
    hidden: tuple[str, ...]
    """Files and folders that the engine has no business with, such as the store."""
    environment: tuple[str, ...]
    """Variables that it is given in addition to those that every program needs."""
    message_format: MessageFormat
    capabilities: frozenset[str]
    counter: str
    recall_share: float = 0.0

    def command(self) -> list[str]:
        """The command line; `-P` keeps the working folder out of the import path."""
        places = [argument for place in self.found.places for argument in ("--place", place)]
        return [
            *(self.python, "-P", "-m", "sidecar.server.engines.proxy.child"),
            *("--engine", self.found.id, "--target", self.found.target, *places),
            *("--memory-mb", str(self.memory_limit_mb)),
            *(argument for place in self.hidden for argument in ("--hide", place)),
            *("--log-level", level_in_force(), "--log-format", CHILD),
        ]

    def handshake(self) -> InitializeParams:
        """The params of `initialize`."""
        counter = cast(Any, self.counter)
        settings = EngineSettings(dict(self.config), counter, self.recall_share)
        options = ContextEngineOptions(
            protocol_version=LATEST,
            host_capabilities=sorted(self.capabilities),
            message_format=self.message_format,
            engine=self.found.id,
            config=Raw(json.encode(settings)),
        )
        return InitializeParams(
            process_id=os.getpid(),
            capabilities=ABSENT,
            initialization_options=InitializationOptions(context_engine=options),
        )


class EngineProcess:
    """Speaks with a process that has loaded its engine."""

    info: EngineInfo
    description: Description

    def __init__(
        self, child: ChildProcess, peer: Peer, answering: Answering, tool_answering: ToolAnswering
    ) -> None:
        self._child = child
        self._peer = peer
        self.answering = answering
        self.tool_answering = tool_answering
        self.condemned = False
        """True once the process was ended because it answered no longer."""

    @classmethod
    async def start(cls, plan: ProcessPlan, host: HostServices) -> EngineProcess:
        """Start a process and let it load its engine.

        Raises:
            EngineRefused: the engine does not load, or its settings are wrong.
            ProcessFailed: the process does not start, or ends again.
        """
        hide_memory()
        try:
            child = await ChildProcess.start(
                plan.command(),
                on_stderr=ChildLog(plan.found.id).take,
                env=environment({**os.environ, **absolute_path(os.environ)}, plan.environment),
                cwd=None,
                stderr_pause_s=STDERR_PAUSE_S,
            )
        except SidecarNotStarted as error:
            raise ProcessFailed(str(error)) from error
        answering = Answering(host)
        tools = ToolAnswering(answering.router)
        limits = PeerLimits(request_timeout_ms=0, max_in_flight=IN_FLIGHT)
        peer = Peer(answering.router, StdioTransport(child.source, child.sink), limits)
        peer.on_fault = _fault
        peer.start(newline=False)
        process = cls(child, peer, answering, tools)
        try:
            await process._greet(plan)
        except BaseException:
            process.kill()
            await process._ended()
            raise
        return process

    @property
    def alive(self) -> bool:
        """False once the process has ended, or is about to."""
        return not self.condemned and self._child.exit_code is None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._child.pid

    async def request(self, method: str, params: object, result: type[T], *, timeout_ms: float = 0) -> T:
        """The process's answer; it may take as long as it likes unless `timeout_ms` says otherwise.

        Raises:
            RemoteError: it answered with an error.
            InvalidResult: it answered something of another type.
            ProcessFailed: it has ended.
        """
        try:
            return await self._peer.request(method, params, result, timeout_ms=timeout_ms)
        except ConnectionLost:
            raise ProcessFailed(await self._last_words()) from None

    async def look_after(self) -> None:
        """End the process if it answers nothing any more."""
        try:
            await self.request("engine/ping", Nothing(), Nothing, timeout_ms=PING_MS)
        except (RpcError, ProcessFailed):
            if self._child.exit_code is None:
                extra = about(event="engineProcessEnded", engine=self.info.id)
                _log.warning("process %d answers no longer and is ended", self.pid, extra=extra)
            self.condemned = True
            self.kill()

    async def close(self) -> None:
        """End the process in order, or else by force."""
        try:
            if self.alive:
                await self.request("shutdown", None, object, timeout_ms=CLOSE_MS)
                self._peer.notify("exit")
                await self._peer.flush(CLOSE_MS / 1000)
                await self._child.wait(CLOSE_MS / 1000)
        except (RpcError, ProcessFailed):
            pass
        finally:
            self.kill()
            await self._ended()

    def kill(self) -> None:
        """End the process at once, with what its engine has started."""
        self._child.kill_group()

    async def _greet(self, plan: ProcessPlan) -> None:
        try:
            welcome = await self.request(
                "initialize", plan.handshake(), InitializeResult, timeout_ms=START_MS
            )
            self._peer.notify("initialized", InitializedParams())
            self.description = await self.request(
                "engine/describe", Nothing(), Description, timeout_ms=START_MS
            )
        except RemoteError as error:
            raise EngineRefused(error.message) from None
        except RequestTimedOut:
            raise ProcessFailed(f"{plan.found.id} did not load within {START_MS // 1000} s") from None
        except InvalidResult as error:
            raise ProcessFailed(error.message) from None
        self.info = welcome.capabilities.experimental.context_engine.engine

    async def _ended(self) -> None:
        self._peer.close()
        await self._child.wait(CLOSE_MS / 1000)
        self._child.close()

    async def _last_words(self) -> str:
        """What became of the process."""
        if self.condemned:
            return "the engine's process answered nothing any more and was ended"
        code = await asyncio.shield(self._child.wait(CLOSE_MS / 1000))
        if code is None:
            self.condemned = True
            self.kill()
            return "the engine's process has closed its output and was ended"
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
            return f"the engine's process was ended by {name}"
        return f"the engine's process ended with exit code {code}"


def _fault(call: Call, problem: Exception) -> RpcError:
    del call
    return to_rpc_error(problem)


class _Record(Struct):
    level: int
    message: str
    fields: dict[str, str | int | float] = {}
    trace: str | None = None


class _Line(Struct, rename="camel"):
    child_log: _Record


_decode = msgspec.json.Decoder(_Line).decode


class ChildLog:
    """Passes on a bounded number of lines a second, each with the engine's name."""

    def __init__(self, engine_id: str) -> None:
        self._engine_id = engine_id
        self._log = logging.getLogger(f"sidecar.engines.{engine_id}")
        self._second = 0
        self._lines = 0

    def take(self, line: str) -> None:
        """Log a line, or pass over it."""
        second = int(time.monotonic())
        if second != self._second:
            if self._lines > LINES_A_SECOND:
                self._write(logging.WARNING, f"{self._lines - LINES_A_SECOND} more lines are left out", {})
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines <= LINES_A_SECOND:
            self._pass_on(line)

    def _pass_on(self, line: str) -> None:
        record = None
        if line.startswith(CHILD_LINE):
            try:
                record = _decode(line).child_log
            except msgspec.DecodeError:
                record = None
        if record is None:
            self._write(logging.WARNING, line, {})
            return
        message = f"{record.message}\n{record.trace}" if record.trace else record.message
        self._write(record.level, message, record.fields)

    def _write(self, level: int, message: str, fields: Mapping[str, object]) -> None:
        self._log.log(level, "%s", message, extra=about(**{**fields, "engine": self._engine_id}))
