"""Runs a server on standard input and output until it is told to end."""

import asyncio
import atexit
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

from sidecar.rpc.dispatch import PeerLimits
from sidecar.rpc.peer import End, Peer
from sidecar.rpc.router import Router
from sidecar.rpc.stdio import StdioTransport, claim_standard_streams
from sidecar.server.lifecycle import Application, Lifecycle
from sidecar.server.log import log_to_stderr

MakeApplication = Callable[[Router, Peer], Application]
"""Registers the application's methods with the router and returns what the lifecycle drives."""

# An answer of ten thousand messages is made of a hundred thousand small objects, of which none is garbage;
# looking through them as often as Python does by itself took a third of its time.
_COLLECT_AFTER = (20_000, 20, 20)

_log = logging.getLogger(__name__)

_FLUSH_S = 2.0
_LEFTOVERS_S = 0.2


def run(
    make_application: MakeApplication,
    *,
    log_level: str = "warning",
    log_format: str = "text",
    limits: PeerLimits | None = None,
) -> NoReturn:
    """Serve until the host ends the connection, and end the process with the exit code.

    Raises:
        ValueError: there is no such log level.
        KeyError: there is no such log format.
    """
    log_to_stderr(log_level, log_format)
    gc.set_threshold(*_COLLECT_AFTER)
    source, sink = claim_standard_streams()
    loop = asyncio.new_event_loop()
    _end_copies(loop, source, sink)
    loop.set_exception_handler(_report)
    try:
        code = loop.run_until_complete(_converse(make_application, StdioTransport(source, sink), limits))
        _cancel_leftovers(loop)
    except MemoryError:
        _end_without_memory()
    finally:
        loop.close()
    _end(code)


def _end_without_memory() -> NoReturn:
    # Whatever could be done now may need memory too, and a process that only seems to serve is worse.
    os.write(2, b"context-sidecar: out of memory, the process ends\n")
    os._exit(1)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what a callback raised, unless there is no memory: the log may have to be imported still."""
    if isinstance(context.get("exception"), MemoryError):
        _end_without_memory()
    loop.default_exception_handler(context)


def _end_copies(loop: asyncio.AbstractEventLoop, *streams: int) -> None:
    """Let a copy of this process, which an engine has forked, say nothing and end instead of serving on."""

    def in_copy() -> None:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in streams:
            os.dup2(null, stream)
        os.close(null)
        loop.call_soon(os._exit, 1)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=in_copy)


async def _converse(
    make_application: MakeApplication, transport: StdioTransport, limits: PeerLimits | None
) -> int:
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[int] = loop.create_future()
    at_once = True

    def finish(code: int) -> None:
        if not finished.done():
            finished.set_result(code)

    router = Router()
    peer = Peer(router, transport, limits)
    lifecycle = Lifecycle(router, peer, make_application(router, peer), finish)

    def ended(end: End) -> None:
        nonlocal at_once
        at_once = end is not End.CLEAN and end is not End.INSIDE
        if end is End.INSIDE:
            _log.error("the input ended inside a message; it was not carried out, the exit code is 1")
        if end is not End.STOPPED:
            finish(0 if end is End.CLEAN or (end is End.BROKEN and not peer.inside_message) else 1)

    def terminate() -> None:
        nonlocal at_once
        at_once = True
        transport.read_available()
        peer.stop_reading()
        finish(1 if peer.inside_message else 0)

    peer.on_end = ended
    _on_signals(loop, terminate)
    peer.start()
    code = await finished
    await lifecycle.wind_down(at_once=at_once)
    await peer.flush(_FLUSH_S)
    peer.close()
    return code


def _on_signals(loop: asyncio.AbstractEventLoop, terminate: Callable[[], None]) -> None:
    def from_handler(number: int, frame: FrameType | None) -> None:
        del number, frame
        loop.call_soon_threadsafe(terminate)

    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, terminate)
        except NotImplementedError:
            signal.signal(number, from_handler)


def _cancel_leftovers(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=_LEFTOVERS_S))


def _end(code: int) -> NoReturn:
    """End the process; a thread of a handler that is stuck cannot keep it.

    The interpreter's own end would take 25 ms of CPU to free, piece by piece, what the kernel frees at once.
    """
    deadline = time.monotonic() + _LEFTOVERS_S
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join(max(0.0, deadline - time.monotonic()))
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
