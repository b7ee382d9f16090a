"""A store that has lost what it had acknowledged: sidecars show what is stored, not what they remember."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.sidecar_host import Host, exported
from tests.postgres_server import PostgresServer


def say(host: Host, *texts: str) -> None:
    for text in texts:
        host.call("context/ingest", sessionId="s", message={"role": "user", "content": text})


def shown(host: Host) -> tuple[list[str], int]:
    """What the model sees, and the epoch."""
    answer = host.call("context/assemble", sessionId="s", tokenBudget=4000)
    return [message["content"] for message in answer["messages"]], answer["contextEpoch"]


def stored(host: Host) -> list[str]:
    return [each["message"]["content"] for each in exported(host, "s")]


def copy(source: Path, target: Path) -> None:
    """Put the content of one database into another, whoever uses that."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


def test_a_store_that_is_restored_beneath_a_sidecar_is_shown_as_it_is(tmp_path: Path) -> None:
    live, backup = tmp_path / "live" / "context.db", tmp_path / "other" / "context.db"
    with Host(tmp_path / "live", engine="full") as host:
        say(host, "one", "two", "three")
        backup.parent.mkdir(mode=0o700)
        copy(live, backup)
        say(host, "lost four", "lost five")
        before, epoch = shown(host)
        assert before == ["one", "two", "three", "lost four", "lost five"]

        copy(backup, live)
        after, later = shown(host)
        assert after == ["one", "two", "three"]
        assert later > epoch

        with Host(tmp_path / "other", engine="full") as other:
            say(other, "new four", "new five", "new six")
        say(host, "lost again", "and again", "and again!")
        assert shown(host)[0] == ["one", "two", "three", "lost again", "and again", "and again!"]
        copy(backup, live)
        after, last = shown(host)
        assert after == stored(host) == ["one", "two", "three", "new four", "new five", "new six"]
        assert last > later
        say(host, "seven")
        assert shown(host) == ([*after, "seven"], last)


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary, and a standby that no commit waits for."""
    primary = PostgresServer()
    try:
        standby = PostgresServer(standby_of=primary)
        yield primary, standby
        standby.remove()
    finally:
        primary.remove()


def config(*servers: PostgresServer) -> dict[str, Any]:
    hosts = ",".join(server.url.split()[0].removeprefix("host=") for server in servers)
    url = f"host={hosts} user=tests dbname=postgres target_session_attrs=read-write"
    return {"store": {"kind": "postgres", "url": url}}


def test_messages_that_a_failover_has_lost_are_shown_by_no_sidecar(
    tmp_path: Path, pair: tuple[PostgresServer, PostgresServer]
) -> None:
    primary, standby = pair
    options: dict[str, Any] = {"engine": "full", "config": config(primary, standby), "namespace": "shared"}
    with Host(tmp_path / "one", **options) as one, Host(tmp_path / "two", **options) as two:
        say(one, "one", "two", "three")
        end = primary.value("SELECT pg_current_wal_flush_lsn()")
        standby.wait_for(f"SELECT pg_last_wal_replay_lsn() >= '{end}'")
        standby.configure(primary_conninfo="")
        standby.wait_for("SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")
        say(one, "lost four", "lost five")
        for host in (one, two):
            assert shown(host)[0] == ["one", "two", "three", "lost four", "lost five"]
        epoch = shown(one)[1]

        primary.kill()
        standby.promote()
        say(two, "new four", "new five")
        expected = ["one", "two", "three", "new four", "new five"]
        for host in (two, one):
            assert shown(host)[0] == stored(host) == expected
        assert shown(one)[1] > epoch
        say(one, "six")
        for host in (one, two):
            assert shown(host)[0] == [*expected, "six"]
        one.stop()
        assert "lost commits that it had acknowledged" in one.log.read_text()
        assert "lost messages of a session" in one.log.read_text()
