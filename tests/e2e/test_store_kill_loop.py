"""SIGKILL at any moment loses nothing that was acknowledged, and leaves a store that opens."""

import os
import random
import select
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import apsw
import pytest

from sidecar.store import open_store
from sidecar.store.contract import SessionRef
from tests.store_kit import Driver

APPENDER = Path(__file__).with_name("store_appender.py")
LIMIT_S = 30.0


class Appender:
    """A process that appends, with every line it has printed."""

    def __init__(self, path: Path, prefix: str, count: int | None = None) -> None:
        arguments = [sys.executable, str(APPENDER), str(path), prefix]
        if count is not None:
            arguments.append(str(count))
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE)
        self.output = b""

    def read_until(self, lines: int) -> None:
        """Read until so many lines were printed, or the process has ended."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        deadline = time.monotonic() + LIMIT_S
        while self.output.count(b"\n") < lines:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.process.kill()
                raise AssertionError("the appender has stalled")
            chunk = os.read(descriptor, 65536)
            if not chunk:
                break
            self.output += chunk

    def kill(self) -> list[list[str]]:
        """Kill it; the acknowledged messages as session, id, body."""
        self.process.kill()
        self.read_until(1 << 60)
        self.process.wait(LIMIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return [line.decode().split(" ") for line in self.output.split(b"\n")[:-1]]


def check_acknowledged(path: Path, acknowledged: list[list[str]]) -> None:
    """Every acknowledged message is there exactly once, under its id."""
    with Driver(lambda: open_store("sqlite", path)) as store:
        stored = Counter(
            (ref.session_id, message.message_id, message.body.decode().rstrip())
            for ref in (SessionRef("kill", f"s{index}") for index in range(5))
            for message in store.messages(ref)
        )
        store.append(SessionRef("kill", "after"), "still writable")
    assert max(stored.values(), default=1) == 1
    bodies = Counter(body for _, _, body in stored)
    assert max(bodies.values(), default=1) == 1
    missing = [line for line in acknowledged if tuple(line) not in stored]
    assert missing == []


def kill_loop(path: Path, kills: int) -> None:
    chance = random.Random(kills)
    acknowledged: list[list[str]] = []
    for number in range(kills):
        appender = Appender(path, f"run{number}")
        appender.read_until(chance.randrange(1, 400))
        acknowledged += appender.kill()
        check_acknowledged(path, acknowledged)
    assert len(acknowledged) > kills
    connection = apsw.Connection(str(path))
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


def test_eight_kills_under_load_lose_nothing_acknowledged(tmp_path: Path) -> None:
    kill_loop(tmp_path / "store.db", 8)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_hundred_kills_under_load_lose_nothing_acknowledged(tmp_path: Path) -> None:
    kill_loop(tmp_path / "store.db", 100)


def test_two_processes_append_to_one_file_without_losing_or_doubling_anything(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    appenders = [Appender(path, prefix, 600) for prefix in ("left", "right")]
    for appender in appenders:
        appender.read_until(1 << 60)
    assert [appender.process.wait(LIMIT_S) for appender in appenders] == [0, 0]
    acknowledged = [line for appender in appenders for line in appender.kill()]
    assert len(acknowledged) == 1200
    check_acknowledged(path, acknowledged)
    with Driver(lambda: open_store("sqlite", path)) as store:
        for index in range(5):
            messages = store.messages(SessionRef("kill", f"s{index}"))
            assert [message.position for message in messages] == list(range(1, len(messages) + 1))
            assert len({message.message_id for message in messages}) == len(messages) == 240
            assert [message.turn for message in messages] == list(range(1, 241))


def test_a_process_sees_what_another_has_written_since(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    ref = SessionRef("kill", "shared")
    with Driver(lambda: open_store("sqlite", path)) as one, Driver(lambda: open_store("sqlite", path)) as two:
        for number in range(10):
            writer, reader = (one, two) if number % 2 else (two, one)
            assert writer.append(ref, str(number)).items[0].position == number + 1
            assert reader.texts(ref) == [str(each) for each in range(number + 1)]
