"""Sidecars on PostgreSQL: kills of either side lose nothing acknowledged, and double nothing."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kill_recorder import Recorder
from tests.e2e.sidecar_host import Host
from tests.postgres_server import PostgresServer

ROUND = 25
"""Kills after which other sessions are written to."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that syncs to disk."""
    made = PostgresServer(durable=True)
    yield made
    made.remove()


def kill_sidecar(recorder: Recorder, server: PostgresServer) -> None:
    recorder.run_until_killed()
    recorder.host.restart(kill=True)


def kill_server(recorder: Recorder, server: PostgresServer) -> None:
    """The sidecar goes on by itself; what it was asked while the server was away is answered."""
    recorder.send_for_a_while()
    server.kill()
    recorder.send_some()
    server.start()
    recorder.settle()


KILLS = {"sidecar": [kill_sidecar], "server": [kill_server], "either": [kill_sidecar, kill_server]}


def kill_again_and_again(state_dir: Path, server: PostgresServer, times: int, what: str) -> None:
    chance = random.Random(f"{what} {times}")
    acknowledged = refused = 0
    config = {"store": {"kind": "postgres", "url": server.fresh()}}
    with Host(state_dir, engine="default", config=config) as host:
        for start in range(0, times, ROUND):
            recorder = Recorder(host, times, f"{what}-round{start}-")
            for _ in range(min(ROUND, times - start)):
                chance.choice(KILLS[what])(recorder, server)
                recorder.check()
            acknowledged += recorder.count()
            refused += recorder.refused
    print(f"{times} kills ({what}), {acknowledged} messages acknowledged, {refused} requests refused")
    assert acknowledged > times


@pytest.mark.parametrize("what", ["sidecar", "server"])
def test_kills_lose_nothing_that_was_acknowledged(tmp_path: Path, server: PostgresServer, what: str) -> None:
    kill_again_and_again(tmp_path, server, 2, what)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("what", list(KILLS))
def test_a_hundred_kills_lose_nothing_that_was_acknowledged(
    tmp_path: Path, server: PostgresServer, what: str
) -> None:
    kill_again_and_again(tmp_path, server, 100, what)
