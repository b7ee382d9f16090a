"""SIGKILL at any moment loses nothing that was acknowledged, and leaves a store that opens."""

import random
from pathlib import Path

import apsw
import pytest

from sidecar.store import open_store
from sidecar.store.stored import SessionRef
from tests.e2e.appender_process import LIMIT_S, Appender, check_acknowledged
from tests.store_kit import Driver


def check_file(path: Path, acknowledged: list[list[str]]) -> None:
    with Driver(lambda: open_store("sqlite", path)) as store:
        check_acknowledged(store, acknowledged)


def kill_loop(path: Path, kills: int) -> None:
    chance = random.Random(kills)
    acknowledged: list[list[str]] = []
    for number in range(kills):
        with Appender(path, f"run{number}") as appender:
            appender.read_until(chance.randrange(1, 400))
            acknowledged += appender.kill()
        check_file(path, acknowledged)
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
    with Appender(path, "left", 600) as left, Appender(path, "right", 600) as right:
        appenders = (left, right)
        for appender in appenders:
            appender.read_until(1 << 60)
        assert [appender.process.wait(LIMIT_S) for appender in appenders] == [0, 0]
        acknowledged = [line for appender in appenders for line in appender.kill()]
    assert len(acknowledged) == 1200
    check_file(path, acknowledged)
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
