"""Kills of the server or of a writing process lose nothing that was acknowledged, and double nothing."""

import random
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sidecar.store import open_store
from sidecar.store.stored import SessionRef
from tests.e2e.appender_process import LIMIT_S, Appender, check_acknowledged
from tests.postgres_server import PostgresServer
from tests.store_kit import Driver


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server that syncs to disk."""
    made = PostgresServer(durable=True)
    yield made
    made.remove()


def check(server: PostgresServer, acknowledged: list[list[str]]) -> None:
    with Driver(lambda: open_store("postgres", url=server.url)) as store:
        check_acknowledged(store, acknowledged)


def kill_processes(server: PostgresServer, kills: int) -> None:
    chance = random.Random(kills)
    acknowledged: list[list[str]] = []
    for number in range(kills):
        with Appender(server.url, f"run{number}") as appender:
            appender.read_until(chance.randrange(1, 300))
            acknowledged += appender.kill()
        check(server, acknowledged)
    assert len(acknowledged) > kills


def kill_server(server: PostgresServer, kills: int) -> None:
    """One process goes on appending over all restarts of the server."""
    chance = random.Random(kills)
    with Appender(server.url, "steady") as appender:
        for _ in range(kills):
            appender.read_until(appender.output.count(b"\n") + chance.randrange(50, 300))
            server.kill()
            server.start()
        appender.read_until(appender.output.count(b"\n") + 200)
        acknowledged = appender.kill()
    assert len(acknowledged) > 200
    check(server, acknowledged)


def test_three_kills_of_a_writing_process_lose_nothing_acknowledged(server: PostgresServer) -> None:
    kill_processes(server, 3)


def test_a_process_goes_on_over_two_crashes_of_the_server(server: PostgresServer) -> None:
    kill_server(server, 2)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_kills_of_a_writing_process_lose_nothing_acknowledged(server: PostgresServer) -> None:
    kill_processes(server, 100)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_process_goes_on_over_a_hundred_crashes_of_the_server(server: PostgresServer) -> None:
    kill_server(server, 100)


def test_two_processes_keep_the_order_of_a_hundred_sessions(server: PostgresServer) -> None:
    prefixes = ("left", "right")
    with ExitStack() as stack:
        appenders = [stack.enter_context(Appender(server.url, prefix, 1500, 100)) for prefix in prefixes]
        for appender in appenders:
            appender.read_until(1 << 60)
        assert [appender.process.wait(LIMIT_S) for appender in appenders] == [0, 0]
        acknowledged = [line for appender in appenders for line in appender.kill()]
    assert len(acknowledged) == 3000
    with Driver(lambda: open_store("postgres", url=server.url)) as store:
        check_acknowledged(store, acknowledged, sessions=100)
        for index in range(100):
            messages = store.messages(SessionRef("kill", f"s{index}"))
            assert [message.position for message in messages] == list(range(1, 31))
            assert [message.turn for message in messages] == list(range(1, 31))
            bodies = [message.body.decode().rstrip().split("-") for message in messages]
            for prefix in prefixes:
                assert [int(n) for p, n in bodies if p == prefix] == list(range(index, 1500, 100))
