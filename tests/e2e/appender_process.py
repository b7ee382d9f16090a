"""A process that appends to a store, with all that it was told is stored."""

import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from sidecar.store.stored import SessionRef
from tests.store_kit import Driver

APPENDER = Path(__file__).with_name("store_appender.py")
LIMIT_S = 30.0


class Appender:
    """A process that appends, with every line it has printed; ended for good when its block is left."""

    def __init__(self, target: Path | str, prefix: str, *limits: int) -> None:
        arguments = [sys.executable, str(APPENDER), str(target), prefix, *map(str, limits)]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE)
        self.output = b""

    def __enter__(self) -> "Appender":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(LIMIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def read_until(self, lines: int) -> None:
        """Read until so many lines were printed, or the process has ended."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        deadline = time.monotonic() + LIMIT_S
        while self.output.count(b"\n") < lines:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the appender has stalled"
            chunk = os.read(descriptor, 65536)
            if not chunk:
                break
            self.output += chunk

    def kill(self) -> list[list[str]]:
        """Kill it; the acknowledged messages as session, id, body."""
        self.process.kill()
        self.read_until(1 << 60)
        return [line.decode().split(" ") for line in self.output.split(b"\n")[:-1]]


def check_acknowledged(store: Driver, acknowledged: Sequence[list[str]], sessions: int = 5) -> None:
    """Every acknowledged message is there exactly once, under its id, and nothing is there twice."""
    stored = Counter(
        (ref.session_id, message.message_id, message.body.decode().rstrip())
        for ref in (SessionRef("kill", f"s{index}") for index in range(sessions))
        for message in store.messages(ref)
    )
    store.append(SessionRef("kill", "after"), "still writable")
    assert max(stored.values(), default=1) == 1
    bodies = Counter(body for _, _, body in stored)
    assert max(bodies.values(), default=1) == 1
    missing = [line for line in acknowledged if tuple(line) not in stored]
    assert missing == []
