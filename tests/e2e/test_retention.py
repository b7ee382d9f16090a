"""Sessions that nobody uses any more are erased by age or size, archived before where that is wanted."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from sidecar.server.background.retention import Clock, ClockAhead
from tests.client_kit import run_cli
from tests.e2e.sidecar_host import LIMIT_S, Host, exported, history
from tests.e2e.talk import Talk
from tests.postgres_server import shared_server

TALK = Talk("openai")
DAY_MS = 86_400_000
AT_ONCE = "[retention]\nminIdleMinutes = 0\neveryMinutes = 0.001\n"


def prune(folder: Path, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    """The sessions that `db prune` erased."""
    done = run_cli("db", "prune", "--json", *arguments, state_dir=folder)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["sessions"]


def age(folder: Path, days: float, *sessions: str) -> None:
    """Let sessions look as if they were not changed for so long."""
    connection = apsw.Connection(str(folder / "context.db"))
    then = time.time_ns() // 1_000_000 - int(days * DAY_MS)
    for session in sessions:
        connection.execute("UPDATE sessions SET updated_ms = ? WHERE session_id = ?", (then, session))
    connection.close()


def ids(host: Host) -> set[str]:
    """The sessions that a sidecar lists."""
    return {entry["sessionId"] for entry in host.call("session/list")["sessions"]}


def fill(host: Host, session: str, count: int = 3) -> None:
    """Store some messages."""
    messages = [TALK.user(f"{session} {n} " + "x" * 400) for n in range(count)]
    host.call("context/ingestBatch", sessionId=session, messages=messages)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Sessions of all ages; the child is a fork of the oldest."""
    with Host(tmp_path, engine="full") as host:
        for name in ("oldest", "old", "young", "new"):
            fill(host, name, 1200 if name == "oldest" else 3)
        host.call("session/fork", sessionId="oldest", newSessionId="child")
        host.stop()
    age(tmp_path, 100, "oldest")
    age(tmp_path, 40, "old")
    age(tmp_path, 20, "young")
    return tmp_path


@contextmanager
def serving(folder: Path, retention: str) -> Iterator[Host]:
    """A sidecar whose configuration file has rules."""
    config = folder / "config.toml"
    config.write_text(retention)
    os.environ["CONTEXT_SIDECAR_CONFIG"] = str(config)
    try:
        host = Host(folder, engine="full")
    finally:
        del os.environ["CONTEXT_SIDECAR_CONFIG"]
    with host:
        yield host


def wait_for(host: Host, expected: set[str]) -> None:
    """Wait until these sessions are left."""
    deadline = time.monotonic() + LIMIT_S
    while ids(host) != expected:
        assert time.monotonic() < deadline, ids(host)
        time.sleep(0.02)


def test_sessions_beyond_an_age_are_erased_and_forks_of_them_stay_whole(stored: Path) -> None:
    with Host(stored, engine="full") as host:
        before = exported(host, "child")
    erased = prune(stored, "--older-than", "30")
    assert [(each["sessionId"], each["messages"], each["reason"]) for each in erased] == [
        ("oldest", 1200, "age"),
        ("old", 3, "age"),
    ]
    with Host(stored, engine="full") as host:
        assert ids(host) == {"young", "new", "child"}
        assert exported(host, "child") == before
    assert run_cli("db", "check", state_dir=stored).returncode == 0


def test_a_dry_run_tells_the_same_and_changes_nothing(stored: Path) -> None:
    would = prune(stored, "--older-than", "30", "--dry-run")
    with Host(stored, engine="full") as host:
        assert ids(host) == {"oldest", "old", "young", "new", "child"}
    assert would == prune(stored, "--older-than", "30")


def test_nothing_of_what_was_erased_is_left_in_any_file(stored: Path) -> None:
    assert b"old 2 xxx" in (stored / "context.db").read_bytes()
    prune(stored, "--older-than", "30")
    files = b"".join(path.read_bytes() for path in stored.glob("context.db*"))
    assert b'"old 2 xxx' not in files
    assert b'"young 2 xxx' in files


def test_a_size_takes_the_longest_unused_sessions_first(tmp_path: Path) -> None:
    with Host(tmp_path, engine="full") as host:
        for n in range(6):
            messages = [TALK.user(f"{n} {k} " + os.urandom(25_000).hex()) for k in range(20)]
            host.call("context/ingestBatch", sessionId=f"s{n}", messages=messages)
        host.stop()
    for n in range(6):
        age(tmp_path, 10 - n, f"s{n}")
    would = prune(tmp_path, "--max-size", "4", "--dry-run")
    erased = prune(tmp_path, "--max-size", "4")
    assert [each["sessionId"] for each in erased] == [f"s{n}" for n in range(len(erased))]
    assert 1 <= len(erased) <= 4
    assert abs(len(would) - len(erased)) <= 1
    assert {each["reason"] for each in erased} == {"size"}
    assert prune(tmp_path, "--max-size", "4") == []


def test_what_was_changed_lately_stays_whatever_the_size(stored: Path) -> None:
    age(stored, 0, "oldest", "old", "young")
    assert prune(stored, "--max-size", "1") == []
    assert prune(stored, "--older-than", "0.00001", "--min-idle", "10") == []


def test_an_archive_has_every_message_before_the_session_goes(stored: Path) -> None:
    with Host(stored, engine="full") as host:
        before = {name: exported(host, name) for name in ("oldest", "old")}
    erased = prune(stored, "--older-than", "30", "--archive", str(stored / "archive"))
    assert sorted(path.name for path in (stored / "archive").iterdir()) == sorted(
        Path(each["archive"]).name for each in erased
    )
    for each in erased:
        lines = [json.loads(line) for line in Path(each["archive"]).read_text().splitlines()]
        assert {line["sessionId"] for line in lines} == {each["sessionId"]}
        shown = [
            {key: line[key] for key in ("messageId", "turnId", "timestamp", "message")} for line in lines
        ]
        assert shown == before[each["sessionId"]]


def test_without_room_for_the_archive_nothing_is_erased(stored: Path) -> None:
    (stored / "archive").write_text("a file where the folder should be")
    done = run_cli(
        "db", "prune", "--older-than", "30", "--archive", str(stored / "archive" / "x"), state_dir=stored
    )
    assert done.returncode == 1
    with Host(stored, engine="full") as host:
        assert ids(host) == {"oldest", "old", "young", "new", "child"}


def test_a_key_like_a_path_leaves_the_archive_folder_alone(tmp_path: Path) -> None:
    with Host(tmp_path / "state", engine="full") as host:
        fill(host, "../../outside")
        host.stop()
    age(tmp_path / "state", 40, "../../outside")
    prune(tmp_path / "state", "--older-than", "30", "--archive", str(tmp_path / "archive"))
    assert len(list((tmp_path / "archive").iterdir())) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "state", "state.log"]


def test_a_serving_sidecar_applies_the_rules_between_requests(stored: Path) -> None:
    archive = stored / "archive"
    rules = f'{AT_ONCE}maxAgeDays = 30\narchiveDir = "{archive}"\n'
    with serving(stored, rules) as host:
        said = history(host, "child")
        for n in range(30):
            host.call("context/ingest", sessionId="new", message=TALK.user(str(n)))
        wait_for(host, {"young", "new", "child"})
        assert history(host, "child") == said
        assert len(history(host, "new")) == 33
        host.stop()
    assert len(list(archive.glob("*.jsonl"))) == 2


def test_a_session_that_the_sidecar_works_with_stays(stored: Path) -> None:
    with serving(stored, f"{AT_ONCE}maxAgeDays = 30\n") as host:
        fill(host, "mine")
        host.call("context/assemble", sessionId="mine", tokenBudget=9000)
        age(stored, 50, "mine")
        wait_for(host, {"young", "new", "child", "mine"})
        host.stop()
    with serving(stored, f"{AT_ONCE}maxAgeDays = 30\n") as host:
        wait_for(host, {"young", "new", "child"})


def test_a_host_cannot_set_rules(stored: Path) -> None:
    rules = {"retention": {"maxAgeDays": 1e-9, "minIdleMinutes": 0, "everyMinutes": 0.0001}}
    with Host(stored, engine="full", config=rules) as host:
        for n in range(40):
            host.call("context/ingest", sessionId="new", message=TALK.user(str(n)))
        assert ids(host) == {"oldest", "old", "young", "new", "child"}


def test_sessions_on_a_server_are_pruned_by_the_same_rules(tmp_path: Path) -> None:
    import psycopg

    url = shared_server().fresh()
    config = tmp_path / "config.toml"
    config.write_text(f'[store]\nkind = "postgres"\nurl = "{url}"\n')
    with Host(tmp_path, engine="full", config={"store": {"kind": "postgres", "url": url}}) as host:
        fill(host, "old", 1200)
        fill(host, "new")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE context_sidecar.sessions SET updated_ms = 5 WHERE session_id = 'old'")
        [erased] = prune(tmp_path, "--older-than", "30", "--config", str(config))
        assert (erased["sessionId"], erased["messages"]) == ("old", 1200)
        assert ids(host) == {"new"}
        with psycopg.connect(url, autocommit=True) as connection:
            assert connection.execute("SELECT count(*) FROM context_sidecar.messages").fetchone() == (3,)


def test_without_a_rule_the_command_says_how_to_set_one(stored: Path) -> None:
    done = run_cli("db", "prune", state_dir=stored)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--older-than" in done.stderr


def test_a_clock_years_ahead_of_everything_in_the_store_erases_nothing(tmp_path: Path) -> None:
    with Host(tmp_path / "state", engine="full") as host:
        for session in ("old", "older"):
            host.call("context/ingest", sessionId=session, message={"role": "user", "content": "hello"})
    age(tmp_path / "state", 3650, "old", "older")
    rules = ("db", "prune", "--older-than", "30", "--state-dir", str(tmp_path / "state"))
    refused = run_cli(*rules, state_dir=tmp_path)
    assert refused.returncode == 1
    assert "the clock says" in refused.stderr and "nothing is erased" in refused.stderr
    trusted = run_cli(*rules, "--trust-clock", "--json", state_dir=tmp_path)
    assert len(json.loads(trusted.stdout)["sessions"]) == 2


def test_a_serving_sidecar_skips_a_round_and_the_doctor_says_so(tmp_path: Path) -> None:
    with Host(tmp_path / "state", engine="full") as host:
        host.call("context/ingest", sessionId="old", message={"role": "user", "content": "hello"})
    age(tmp_path / "state", 3650, "old")
    config = tmp_path / "config.toml"
    config.write_text("[retention]\nmaxAgeDays = 30\nminIdleMinutes = 0\neveryMinutes = 0.001\n")
    environment = {"CONTEXT_SIDECAR_CONFIG": str(config)}

    def reported() -> bool:
        # What is stored now has the time of the doubtful clock, and does not bear it out.
        host.call("context/ingest", sessionId="new", message={"role": "user", "content": "hello"})
        return any(check["name"] == "retention" for check in host.call("engine/doctor")["checks"])

    with Host(tmp_path / "state", engine="full", environment=environment) as host:
        host.until(reported, "no round was skipped")
        assert host.call("session/get", sessionId="old")["messageCount"] == 1
        host.stop()
        assert "retention is skipped" in host.log.read_text()


def test_a_clock_that_jumps_while_the_process_runs_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(None)
    assert clock.now_ms() > 0
    later = time.time_ns() + 60 * DAY_MS * 1_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)
    with pytest.raises(ClockAhead, match="has jumped"):
        clock.now_ms()
