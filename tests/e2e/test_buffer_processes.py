"""Processes that flush one buffer share its episodes out, and none is lost with a process."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.store import open_buffer, open_store
from tests.postgres_server import shared_server
from tests.store_kit import Driver

LIMIT_S = 30.0
FLUSHER = Path(__file__).with_name("buffer_flusher.py")
EPISODES = 120


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the buffer is."""
    return shared_server().fresh() if request.param == "postgres" else str(tmp_path / "store.db")


def opened(target: str) -> Driver:
    if "dbname=" in target:
        return Driver(lambda: open_store("postgres", url=target))
    return Driver(lambda: open_store("sqlite", Path(target)))


def fill(store: Driver) -> None:
    buffer = open_buffer(store.store, "host", "recall")
    for number in range(EPISODES):
        store.run(buffer.push(str(number).encode(), "main"))


def flusher(target: str, mode: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, str(FLUSHER), target, mode], stdout=subprocess.PIPE)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline


def test_two_processes_flush_every_episode_once(target: str) -> None:
    with opened(target) as store:
        fill(store)
        running = [flusher(target, "flush") for _ in range(2)]
        lines = [process.communicate(timeout=LIMIT_S)[0].split() for process in running]
        assert [process.returncode for process in running] == [0, 0]
        assert sorted(map(int, lines[0] + lines[1])) == list(range(EPISODES))
        assert store.run(open_buffer(store.store, "host", "recall").count()) == 0


def test_what_a_killed_process_had_claimed_is_free_when_its_lease_has_run_out(target: str) -> None:
    with opened(target) as store:
        fill(store)
        process = flusher(target, "claim")
        assert process.stdout is not None
        claimed = [int(process.stdout.readline()) for _ in range(10)]
        process.kill()
        process.wait(LIMIT_S)
        process.stdout.close()
        buffer = open_buffer(store.store, "host", "recall")
        found: list[int] = []

        def all_claimed() -> bool:
            found.extend(int(each.payload) for each in store.run(buffer.claim(1000, 3_600_000)))
            return len(found) == EPISODES

        until(all_claimed)
        assert sorted(found) == list(range(EPISODES))
        assert claimed == list(range(10))
