"""One sidecar process for all agents of a Python program, whatever threads and event loops they run on.

The client lives on an event loop in a thread of its own, so that synchronous and asynchronous callers share
it. A sidecar that fails never fails the run of an agent: callers get `None` and go on without it.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from sidecar.client import SidecarClient
from sidecar.client.errors import SidecarExited
from sidecar.client.host_callbacks import HostCallbacks
from sidecar.client.sidecar_client import DEFAULT_COMMAND
from sidecar.protocol.base import MessageFormat
from sidecar.protocol.runtime import CompleteRuntimeParams

T = TypeVar("T")
Work = Callable[[SidecarClient], Awaitable[T]]
Complete = Callable[[CompleteRuntimeParams], str]
"""Answers `runtime/complete` by a model of the framework; called in a thread."""

TIMEOUT_S = 30.0
"""How long an agent waits for one answer before it goes on without the sidecar."""
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
"""How soon a sidecar that does not start is started again; the pause doubles."""
_CLOSE_S = 5.0
_MOST_MODELS = 1_000
"""Sessions whose model is remembered."""

_log = logging.getLogger(__name__)


class _StillDown(ConnectionError):
    """The sidecar did not start, and it is too early to try again."""


class SharedSidecar:
    """A sidecar that is started on first use, again after it has died, and ends with the program."""

    def __init__(
        self,
        *,
        message_format: MessageFormat,
        host: str,
        engine: str | None = None,
        namespace: str | None = None,
        state_dir: str | Path | None = None,
        config: Mapping[str, object] | None = None,
        command: Sequence[str] = DEFAULT_COMMAND,
        timeout_s: float = TIMEOUT_S,
        completes: bool = False,
    ) -> None:
        self._message_format: MessageFormat = message_format
        self._host = host
        self._engine = engine
        self._namespace = namespace
        self._state_dir = state_dir
        self._config = config
        self._command = command
        self._timeout_s = timeout_s
        self._completes = completes
        self._models: OrderedDict[str, Complete] = OrderedDict()
        self._guard = threading.Lock()
        self._begin_anew()
        if hasattr(os, "register_at_fork"):
            # The pipes belong to the parent: what both wrote there would be one stream.
            os.register_at_fork(after_in_child=self._begin_anew)
        atexit.register(self.close)

    def _begin_anew(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: SidecarClient | None = None
        self._opening: asyncio.Lock | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._pause_s = _FIRST_PAUSE_S
        self._not_before = 0.0

    @property
    def pid(self) -> int | None:
        """The process id of the sidecar, while it runs."""
        return self._client.pid if self._client is not None else None

    def use_model(self, session_id: str, complete: Complete) -> None:
        """Let this model answer what an engine asks about a session."""
        self._models[session_id] = complete
        self._models.move_to_end(session_id)
        while len(self._models) > _MOST_MODELS:
            self._models.popitem(last=False)

    def ask(self, work: Work[T], purpose: str) -> T | None:
        """What `work` makes of the client; `None`, with a line in the log, where the sidecar fails."""
        try:
            return self._submit(work).result()
        except Exception as error:
            self._report(error, purpose)
            return None

    async def ask_async(self, work: Work[T], purpose: str) -> T | None:
        """As `ask`, for callers on an event loop of their own."""
        try:
            return await asyncio.wrap_future(self._submit(work))
        except Exception as error:
            self._report(error, purpose)
            return None

    def go_on(self, work: Coroutine[object, object, None], purpose: str) -> None:
        """Do work that nobody waits for; called on the client's loop."""

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and isinstance(error := task.exception(), Exception):
                self._report(error, purpose)

        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(done)

    def close(self) -> None:
        """End the process; the next use starts another one."""
        with self._guard:
            loop, client = self._loop, self._client
            self._begin_anew()
        if loop is None:
            return
        if client is not None:
            with suppress(Exception):
                asyncio.run_coroutine_threadsafe(client.close(), loop).result(_CLOSE_S)
        loop.call_soon_threadsafe(loop.stop)

    def _submit(self, work: Work[T]) -> Future[T]:
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=_serve, args=(self._loop,), name="context-sidecar", daemon=True
                ).start()
            loop = self._loop
        return asyncio.run_coroutine_threadsafe(self._worked(work), loop)

    async def _worked(self, work: Work[T]) -> T:
        client = await self._open_client()
        try:
            return await work(client)
        except SidecarExited:
            # Nothing acknowledged is lost, and every request that is sent here may come twice.
            return await work(await self._open_client())

    async def _open_client(self) -> SidecarClient:
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._client is not None:
                if self._client.alive:
                    return self._client
                dead, self._client = self._client, None
                with suppress(Exception):
                    await dead.close()
            if time.monotonic() < self._not_before:
                raise _StillDown("the sidecar did not start a moment ago")
            client = self._made()
            try:
                await client.open()
            except BaseException:
                self._not_before = time.monotonic() + self._pause_s
                self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
                raise
            self._pause_s = _FIRST_PAUSE_S
            self._client = client
            return client

    def _made(self) -> SidecarClient:
        callbacks: HostCallbacks = {"on_complete": self._complete} if self._completes else {}
        return SidecarClient.start(
            self._command,
            engine=self._engine,
            message_format=self._message_format,
            namespace=self._namespace,
            state_dir=self._state_dir,
            host=self._host,
            config=self._config,
            timeout_s=self._timeout_s,
            deltas=True,
            **callbacks,
        )

    async def _complete(self, params: CompleteRuntimeParams) -> str:
        complete = self._models.get(params.session_id or "")
        if complete is None:
            raise LookupError("no agent of this process has this session")
        return await asyncio.to_thread(complete, params)

    def _report(self, error: Exception, purpose: str) -> None:
        # A line when it fails to start is enough; the calls until the next attempt say nothing new.
        level = logging.DEBUG if isinstance(error, _StillDown) else logging.WARNING
        _log.log(level, "the agent goes on without the sidecar: %s failed: %s", purpose, error)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()
