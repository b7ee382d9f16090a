"""Notices when the host's process dies, even if it leaves its pipes open."""

import asyncio
import os
import select
import sys
from collections.abc import Callable

_POLL_S = 2.0


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
