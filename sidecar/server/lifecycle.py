"""The lifecycle of the Language Server Protocol: what may be asked when, and how the server ends."""

from __future__ import annotations

import asyncio
import logging
import os
import select
import sys
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Protocol

from sidecar.protocol.lifecycle import (
    ExitParams,
    InitializedParams,
    InitializeParams,
    InitializeResult,
    SetTraceParams,
    ShutdownParams,
)
from sidecar.rpc.dispatch import HOLD, Hold
from sidecar.rpc.errors import InternalError, InvalidRequest, RequestCancelled, RpcError, ServerNotInitialized
from sidecar.rpc.peer import Peer
from sidecar.rpc.router import Call, Router
from sidecar.server.host_mistakes import WATCHED_PARAMS

_POLL_S = 2.0

GRACE_S = 2.0
"""How long the requests before `shutdown` or SIGTERM may take to be answered; at the end of input, how long
none of them may be answered."""
LONGEST_END_S = 60.0
"""How long the requests before the end of input may take in all."""
_LAST_CALL_S = 0.25
"""How long a request may take to be answered once it was cancelled."""
_LOADING_S = 5.0
"""How long `initialize` may take once the input has ended."""
_CLOSING_S = 10.0

_log = logging.getLogger(__name__)


def watch_process(pid: int, died: Callable[[], None]) -> Callable[[], None] | None:
    """Call `died` once when the process ends; returns what stops the watch, `None` where it is not alive.

    Where the system offers no way to look at a process, nothing is watched: the end of input has to do.
    """
    loop = asyncio.get_running_loop()
    if pid <= 0:
        return None
    try:
        descriptor = os.pidfd_open(pid)
    except (OSError, OverflowError):
        return None
    except AttributeError:
        return _poll(loop, pid, died)
    if select.select([descriptor], [], [], 0)[0]:
        os.close(descriptor)
        return None
    open_descriptor = [descriptor]

    def stop() -> None:
        while open_descriptor:
            loop.remove_reader(open_descriptor[0])
            os.close(open_descriptor.pop())

    def ended() -> None:
        stop()
        died()

    loop.add_reader(descriptor, ended)
    return stop


def _poll(loop: asyncio.AbstractEventLoop, pid: int, died: Callable[[], None]) -> Callable[[], None] | None:
    if sys.platform == "win32" or not _is_alive(pid):
        return None

    def look() -> None:
        nonlocal timer
        if _is_alive(pid):
            timer = loop.call_later(_POLL_S, look)
        else:
            died()

    timer = loop.call_later(_POLL_S, look)
    return lambda: timer.cancel()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


class Application(Protocol):
    """What the lifecycle starts and stops."""

    async def initialize(self, params: InitializeParams) -> InitializeResult:
        """Make everything ready; may be called again after it has failed.

        Raises:
            RpcError: it cannot be made ready; tells the host why.
        """
        ...

    async def close(self) -> None:
        """Release everything; called once, also where `initialize` was never called or failed."""
        ...


class Phase(Enum):
    """How far the connection has come."""

    NEW = "before initialize"
    INITIALIZING = "initialize is running"
    RUNNING = "initialized"
    STOPPING = "shutdown is running"
    STOPPED = "shut down"


class Lifecycle:
    """Lets messages pass according to the phase; serves initialize, shutdown, exit and their companions."""

    def __init__(
        self, router: Router, peer: Peer, application: Application, finish: Callable[[int], None]
    ) -> None:
        """`finish` is told the exit code once the process should wind down and end."""
        self.phase = Phase.NEW
        self.trace = "off"
        """What the client last asked for by `$/setTrace`: `off`, `messages` or `verbose`."""
        self._peer = peer
        self._application = application
        self._finish = finish
        self._shutdown: Call | None = None
        self._shutdown_is_held = False
        self._exit_follows = False
        self._closed = False
        self._stop_watching: Callable[[], None] | None = None
        peer.admit = self.admit
        router.request("initialize", WATCHED_PARAMS, self._on_initialize, cancellable=False)
        router.request("shutdown", ShutdownParams, self._on_shutdown, cancellable=False, urgent=True)
        router.notification("initialized", InitializedParams, _pass_over)
        router.notification("exit", ExitParams, self._on_exit, urgent=True)
        router.notification("$/setTrace", SetTraceParams, self._on_set_trace)

    def admit(self, method: str, is_request: bool) -> RpcError | Hold | None:
        """Whether a message may be handled now, must wait for the outcome of initialize, or is refused."""
        phase = self.phase
        if phase is Phase.RUNNING:
            if method == "initialize" and is_request:
                return InvalidRequest("the server is initialized already", hint="send initialize once")
            return None
        if phase is Phase.INITIALIZING:
            if is_request and method == "shutdown":
                self._shutdown_is_held = True
            return None if method == "exit" and not self._shutdown_is_held else HOLD
        if method == "exit":
            return None
        if phase is Phase.NEW:
            if is_request and method == "shutdown":
                self._shutdown_is_held = False
            return None if is_request and method == "initialize" else ServerNotInitialized()
        return InvalidRequest("the server is shutting down", hint="start a new server")

    async def wind_down(self, *, at_once: bool = False) -> None:
        """Finish what was received, and release everything; `at_once` where somebody waits for the end."""
        peer, shutdown = self._peer, self._shutdown
        peer.abandon_requests()
        if at_once:
            settled = await peer.settled(GRACE_S - 2 * _LAST_CALL_S, besides=shutdown)
        else:
            # An engine that loads answers nothing meanwhile, and the requests behind it cannot either.
            idle_s = GRACE_S if self.phase is not Phase.INITIALIZING else _LOADING_S
            settled = await peer.settled_at_last(idle_s, LONGEST_END_S, besides=shutdown)
        if not settled:
            peer.cancel_all(besides=shutdown)
            await self._last_call(shutdown)
        await peer.settled(_CLOSING_S, besides=None)
        if self._stop_watching is not None:
            self._stop_watching()
        try:
            await self._close()
        except Exception:
            _log.exception("the server could not be closed in order")

    def _on_initialize(
        self, params: InitializeParams, call: Call
    ) -> Coroutine[object, object, InitializeResult]:
        self.phase = Phase.INITIALIZING
        if params.trace is not None:
            self.trace = params.trace
        return self._initialize(params, call)

    async def _initialize(self, params: InitializeParams, call: Call) -> InitializeResult:
        phase = Phase.NEW
        try:
            result = await self._application.initialize(params)
            phase = Phase.RUNNING
            self._watch(params.process_id)
        finally:
            # Held requests are let go in the very step that answers, so that none can overtake them.
            self.phase = phase
            if phase is Phase.NEW:
                self._peer.resume()
        with self._peer.cork():
            call.reply(result)
            self._peer.resume()
        return result

    def _on_shutdown(self, params: ShutdownParams, call: Call) -> Coroutine[object, object, None]:
        del params
        self.phase = Phase.STOPPING
        self._shutdown = call
        return self._shut_down(call)

    async def _shut_down(self, call: Call) -> None:
        if not await self._peer.settled(GRACE_S, besides=call):
            self._peer.cancel_all(besides=call)
            await self._last_call(call)
        try:
            await self._close()
        except Exception as problem:
            _log.exception("the server could not be closed in order")
            raise InternalError("the server could not be closed in order") from problem
        finally:
            self.phase = Phase.STOPPED
            if self._exit_follows:
                self._peer.loop.call_soon(self._finish, 0)

    async def _last_call(self, shutdown: Call | None) -> None:
        if not await self._peer.settled(_LAST_CALL_S, besides=shutdown):
            self._peer.fail_all(
                RequestCancelled("the server ended before the request was done"), besides=shutdown
            )

    async def _close(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.wait_for(self._application.close(), _CLOSING_S)

    def _on_exit(self, params: ExitParams) -> None:
        del params
        self._peer.stop_reading()
        if self.phase is Phase.STOPPING:
            self._exit_follows = True
        else:
            self._finish(0 if self.phase is Phase.STOPPED else 1)

    def _on_set_trace(self, params: SetTraceParams) -> None:
        self.trace = params.value

    def _watch(self, pid: int | None) -> None:
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        if pid is not None:
            self._stop_watching = watch_process(pid, self._host_died)

    def _host_died(self) -> None:
        _log.error("the host's process has ended")
        self._peer.stop_reading()
        self._finish(1)


def _pass_over(params: InitializedParams) -> None:
    del params
