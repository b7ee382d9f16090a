"""A connection to one sidecar process, from start to exit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from sidecar.client.child_process import ChildProcess
from sidecar.client.errors import (
    ClientClosed,
    RequestFailed,
    RequestTimedOut,
    SidecarError,
    SidecarExited,
    UnexpectedAnswer,
    request_failure,
)
from sidecar.client.host_callbacks import callback_fault
from sidecar.rpc.dispatch import PeerLimits
from sidecar.rpc.errors import ConnectionLost, InvalidResult, RemoteError
from sidecar.rpc.errors import RequestTimedOut as NoAnswerInTime
from sidecar.rpc.peer import Peer
from sidecar.rpc.router import Router
from sidecar.rpc.stdio import StdioTransport

T = TypeVar("T")

_LAST_WORDS_S = 5.0
"""How long to wait for the exit of a sidecar that has closed its output, in seconds."""
_SHUTDOWN_S = 5.0
_EXIT_S = 5.0
_TERMINATE_S = 2.0


class Connection:
    """Talks to a child process over its pipes; use it on the loop's thread only."""

    def __init__(self, child: ChildProcess, peer: Peer) -> None:
        self._child = child
        self._peer = peer
        self._closed = False

    @classmethod
    async def open(
        cls,
        command: Sequence[str],
        router: Router,
        *,
        on_stderr: Callable[[str], None],
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
    ) -> Connection:
        """Start the command and connect to it; `env` extends this process's environment.

        Raises:
            SidecarNotStarted: the command cannot be run.
        """
        child = await ChildProcess.start(
            command, on_stderr=on_stderr, env={**os.environ, **(env or {})}, cwd=cwd
        )
        # Each request sets its own limit; a limit here would also apply to those that wait for ever.
        peer = Peer(router, StdioTransport(child.source, child.sink), PeerLimits(request_timeout_ms=0))
        peer.on_fault = callback_fault
        peer.start(newline=False)
        return cls(child, peer)

    @property
    def pid(self) -> int:
        """Process id of the sidecar."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """False once the connection is closed or the process has ended."""
        return not self._closed and self._child.exit_code is None

    async def request(self, method: str, params: object, result_type: type[T], timeout_s: float) -> T:
        """Send a request and return its result; `timeout_s` is in seconds, 0 waits for ever.

        Cancelling the caller cancels the request.

        Raises:
            RequestFailed: the sidecar answered with an error; the subclass tells which.
            RequestTimedOut: no answer arrived in time.
            UnexpectedAnswer: the result does not match `result_type`.
            SidecarExited: the process has ended or has closed its output.
            ClientClosed: this side has closed the connection.
        """
        if self._closed:
            raise ClientClosed("the connection to the sidecar is closed")
        try:
            return await self._peer.request(method, params, result_type, timeout_ms=timeout_s * 1000)
        except RemoteError as error:
            raise request_failure(error) from None
        except NoAnswerInTime:
            raise RequestTimedOut(method, timeout_s) from None
        except InvalidResult as error:
            raise UnexpectedAnswer(error.message) from None
        except ConnectionLost:
            raise await self._loss() from None

    def notify(self, method: str, params: object = None) -> None:
        """Send a notification; does nothing once the connection is closed."""
        if not self._closed:
            self._peer.notify(method, params)

    async def wait(self, limit_s: float | None = None) -> int | None:
        """Wait for the exit code; `None` if the process still runs after `limit_s` seconds."""
        return await self._child.wait(limit_s)

    async def close(self) -> None:
        """Shut the sidecar down, or kill it if it does not comply; cancelling this leaves nothing behind."""
        if self._closed:
            return
        try:
            with suppress(SidecarError):
                await self._end_in_order()
        finally:
            self._closed = True
            self._child.kill()
            self._peer.close()
            await self._child.wait(_EXIT_S)
            self._child.close()

    async def _end_in_order(self) -> None:
        child = self._child
        if child.exit_code is not None:
            return
        with suppress(RequestFailed):  # a sidecar that was never initialized refuses, but obeys `exit`
            await self.request("shutdown", None, object, _SHUTDOWN_S)
        self.notify("exit")
        await self._peer.flush(_TERMINATE_S)
        if await child.wait(_EXIT_S) is None:
            child.terminate()
            await child.wait(_TERMINATE_S)

    async def _loss(self) -> SidecarError:
        if self._closed:
            return ClientClosed("the connection to the sidecar was closed")
        exit_code = await asyncio.shield(self._child.wait(_LAST_WORDS_S))
        return SidecarExited(exit_code, self._child.last_stderr)
