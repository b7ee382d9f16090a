"""The lifecycle of the Language Server Protocol: what may be asked when, and how the server ends."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Protocol

from sidecar.protocol.initialize import InitializedParams, InitializeParams, InitializeResult
from sidecar.protocol.lifecycle import ExitParams, SetTraceParams, ShutdownParams
from sidecar.rpc.call import Call
from sidecar.rpc.dispatch import HOLD, Hold
from sidecar.rpc.errors import InternalError, InvalidRequest, RequestCancelled, RpcError, ServerNotInitialized
from sidecar.rpc.peer import Peer
from sidecar.rpc.router import Router
from sidecar.server.host_process import watch_process

GRACE_S = 2.0
"""How long the requests before `shutdown`, or before the end of input, may take to be answered."""

_LAST_CALL_S = 0.25
"""How long a request may take to be answered once it was cancelled."""

_CLOSING_S = 10.0

_log = logging.getLogger(__name__)


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
        router.request("initialize", InitializeParams, self._on_initialize, cancellable=False)
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

    async def wind_down(self) -> None:
        """Finish what was received, within the grace period, and release everything."""
        peer, shutdown = self._peer, self._shutdown
        peer.abandon_requests()
        if not await peer.settled(GRACE_S - 2 * _LAST_CALL_S, besides=shutdown):
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
