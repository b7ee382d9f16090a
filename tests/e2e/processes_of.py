"""Looks at the processes that belong to a sidecar, and at its descriptors."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.sidecar_host import LIMIT_S, Host


def children(host: Host) -> list[int]:
    """The processes that the sidecar has started and not waited for, zombies included."""
    return children_of(host.process.pid)


def child(host: Host) -> int:
    """The one process that the sidecar has started."""
    (pid,) = children(host)
    return pid


def descriptors(host: Host) -> int:
    """How many descriptors the sidecar has open beside the store's, which opens more by and by."""
    count = 0
    for each in Path(f"/proc/{host.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed in between
            count += not str(each.readlink()).startswith(str(host.state_dir))
    return count


def group(pid: int) -> list[int]:
    """The processes of a group that still run."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            state, _, pgid = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(pgid) == pid and state != "Z":
            found.append(int(folder.name))
    return found


def is_gone(pid: int) -> bool:
    """Whether a process has ended and was waited for."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def until(condition: Callable[[], bool], complaint: str) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, complaint
        threading.Event().wait(0.05)


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended in between
            found += map(int, (task / "children").read_text().split())
    return found
