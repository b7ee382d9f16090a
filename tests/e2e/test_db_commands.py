"""The commands that look after a store: checks, sizes, copies, room given back."""

import json
import stat
from pathlib import Path
from typing import Any

import apsw
import pytest

from sidecar.store.sqlite.schema import MIGRATIONS, VERSION
from tests.client_kit import run_cli
from tests.e2e.sidecar_host import Host, history
from tests.e2e.talk import Talk

TALK = Talk("openai")
COMMANDS = (
    ("check",), ("stats",), ("backup", "copy.db"), ("vacuum",), ("migrate",), ("recover",),
    ("prune", "--older-than", "30"),
)  # fmt: skip


def db(folder: Path, *arguments: str, code: int = 0) -> Any:
    """What a command tells as JSON."""
    done = run_cli("db", *arguments, "--json", state_dir=folder)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def refusal(folder: Path, *arguments: str) -> str:
    """The line with which a command refuses."""
    done = run_cli("db", *arguments, state_dir=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def talk(host: Host, session: str, turns: int) -> list[dict[str, Any]]:
    """Have a conversation stored."""
    said = [message for n in range(turns) for message in TALK.turn(n)]
    host.call("context/ingestBatch", sessionId=session, messages=said)
    return said


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A state directory that a sidecar has used, with a fork."""
    with Host(tmp_path, engine="full") as host:
        talk(host, "a", 20)
        host.call("session/fork", sessionId="a", newSessionId="b")
        host.stop()
    return tmp_path


def test_a_sound_store_is_called_sound_and_left_as_it_is(filled: Path) -> None:
    before = (filled / "context.db").read_bytes()
    found = db(filled, "check")
    assert found["ok"]
    assert all(check["ok"] for check in found["checks"])
    assert (filled / "context.db").read_bytes() == before
    assert "WRONG" not in run_cli("db", "check", state_dir=filled).stdout


def test_damage_is_told_with_what_can_be_done_and_nothing_is_changed(filled: Path) -> None:
    path = filled / "context.db"
    content = path.read_bytes()
    damaged = content[:16384] + b"\xff" * 8192 * 20 + content[16384 + 8192 * 20 :]
    path.write_bytes(damaged)
    found = db(filled, "check", code=1)
    assert not found["ok"]
    assert "db recover" in next(check["fix"] for check in found["checks"] if not check["ok"])
    assert path.read_bytes() == damaged


def test_tables_that_contradict_each_other_are_told(filled: Path) -> None:
    connection = apsw.Connection(str(filled / "context.db"))
    connection.execute("DELETE FROM messages WHERE position = 7")
    connection.close()
    wrong = [check["name"] for check in db(filled, "check", code=1)["checks"] if not check["ok"]]
    assert "messages of sessions" in wrong


def test_the_sizes_are_those_of_the_store(filled: Path) -> None:
    found = db(filled, "stats")
    assert found["sessions"] == 2
    assert found["messages"] * 2 == found["namespaces"][0]["messages"]
    assert found["bytes"] >= sum(found["tableBytes"].values()) >= found["messageBytes"] > 0
    assert f"{found['messages']} of" in run_cli("db", "stats", state_dir=filled).stdout


def test_a_backup_while_a_sidecar_writes_has_everything_acknowledged_before_it(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    with Host(tmp_path / "state", engine="full") as host:
        said = talk(host, "a", 200)
        flying = [host.send("context/ingest", sessionId="b", message=TALK.user(f"b {n}")) for n in range(500)]
        done = db(tmp_path / "state", "backup", str(copy / "context.db"))
        host.wait_all(flying)
        after = history(host, "b")
        assert len(after) == 500
    assert done["bytes"] == (copy / "context.db").stat().st_size
    assert stat.S_IMODE((copy / "context.db").stat().st_mode) == 0o600
    assert [file.name for file in copy.iterdir()] == ["context.db"]
    assert db(copy, "check")["ok"]
    with Host(copy, engine="full") as host:
        assert history(host, "a") == said
        ids = {entry["sessionId"] for entry in host.call("session/list")["sessions"]}
        assert "b" not in ids or history(host, "b") == after[: len(history(host, "b"))]


def test_a_backup_takes_nothing_along_of_what_was_erased(tmp_path: Path) -> None:
    needle = "kumquat-7731"
    with Host(tmp_path, engine="full") as host:
        for n in range(40):
            host.call("context/ingest", sessionId="gone", message=TALK.user(f"{needle} {n} " + "x" * 900))
            host.call("context/ingest", sessionId="kept", message=TALK.user(f"kept {n}"))
        host.call("session/delete", sessionId="gone")
        db(tmp_path, "backup", str(tmp_path / "copy"))
    assert needle.encode() not in (tmp_path / "copy").read_bytes()


def test_neither_backup_nor_restore_overwrites_anything_unasked(filled: Path) -> None:
    db(filled, "backup", str(filled / "copy"))
    before = (filled / "copy").read_bytes(), (filled / "context.db").read_bytes()
    assert "already" in refusal(filled, "backup", str(filled / "copy"))
    assert "--replace" in refusal(filled, "restore", str(filled / "copy"))
    assert before == ((filled / "copy").read_bytes(), (filled / "context.db").read_bytes())


def test_a_restored_store_is_the_one_of_the_backup_and_the_other_is_kept(filled: Path) -> None:
    db(filled, "backup", str(filled / "copy"))
    with Host(filled, engine="full") as host:
        before = history(host, "a")
        host.call("session/delete", sessionId="a")
        host.stop()
    kept = Path(db(filled, "restore", str(filled / "copy"), "--replace")["kept"])
    with Host(filled, engine="full") as host:
        assert history(host, "a") == history(host, "b") == before
        host.stop()
    with Host(filled / "other", engine="full") as host:
        host.stop()
    db(filled / "other", "restore", str(kept), "--replace")
    with Host(filled / "other", engine="full") as host:
        assert host.refusal("session/get", sessionId="a").code == 1003


def test_a_restored_store_knows_what_the_one_it_replaces_has_made(filled: Path) -> None:
    def secrets(path: Path) -> list[bytes]:
        with apsw.Connection(str(path)) as connection:
            return [secret for (secret,) in connection.execute("SELECT secret FROM secrets")]

    store, backup = filled / "context.db", filled / "backup.db"
    db(filled, "backup", str(backup))
    [first] = secrets(store)
    (filled / "context.db").unlink()
    with Host(filled) as host:
        talk(host, "other", 1)
    [second] = secrets(store)
    assert first != second
    db(filled, "restore", str(backup), "--replace")
    assert sorted(secrets(store)) == sorted([first, second])


def test_a_log_that_another_store_has_left_is_not_mixed_with_a_restored_one(filled: Path) -> None:
    db(filled, "backup", str(filled / "copy"))
    with Host(filled, engine="full") as host:
        before = history(host, "a")
        for n in range(20):
            host.call("context/ingest", sessionId="a", message=TALK.user(str(n)))
        host.kill()
    (filled / "context.db").unlink()
    assert (filled / "context.db-wal").exists()
    assert "already" in refusal(filled, "recover", "--to", str(filled / "context.db"), str(filled / "copy"))
    db(filled, "restore", str(filled / "copy"))
    with Host(filled, engine="full") as host:
        assert history(host, "a") == before
    assert db(filled, "check")["ok"]


def test_a_store_that_a_sidecar_uses_is_not_replaced(filled: Path) -> None:
    db(filled, "backup", str(filled / "copy"))
    with Host(filled, engine="full") as host:
        said = history(host, "a")
        assert "in use" in refusal(filled, "restore", str(filled / "copy"), "--replace")
        assert history(host, "a") == said


def test_only_a_sound_store_can_be_restored(filled: Path) -> None:
    (filled / "text").write_text("no store at all, however long it is. " * 50)
    before = (filled / "context.db").read_bytes()
    assert "damaged" in refusal(filled, "restore", str(filled / "text"), "--replace")
    assert (filled / "context.db").read_bytes() == before


def test_vacuum_gives_room_back_while_a_sidecar_serves(tmp_path: Path) -> None:
    with Host(tmp_path, engine="full") as host:
        said = talk(host, "kept", 5)
        batch = [TALK.user("x" * 50_000) for _ in range(100)]
        host.call("context/ingestBatch", sessionId="gone", messages=batch)
        host.call("session/delete", sessionId="gone")
        assert db(tmp_path, "stats")["freeBytes"] > 4_000_000
        sizes = db(tmp_path, "vacuum")
        assert sizes["bytesAfter"] < sizes["bytesBefore"] - 4_000_000
        host.call("context/ingest", sessionId="kept", message=TALK.user("after"))
        assert history(host, "kept") == [*said, TALK.user("after")]
    assert db(tmp_path, "check")["ok"]


def test_migrate_tells_the_versions_and_a_dry_run_changes_nothing(filled: Path) -> None:
    connection = apsw.Connection(str(filled / "context.db"))
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        if name in ("search", "spawns"):
            connection.execute(f"DROP TABLE {name}")
    connection.execute("DROP INDEX session_by_agent; PRAGMA user_version = 3")
    connection.execute(MIGRATIONS[1])
    for column in ("family", "first_edition"):
        connection.execute(f"ALTER TABLE sessions DROP COLUMN {column}")
    connection.close()
    assert "db migrate" in refusal(filled, "stats")
    assert db(filled, "migrate", "--dry-run") == {"versionBefore": 3, "versionAfter": 3, "newest": VERSION}
    assert db(filled, "migrate")["versionAfter"] == VERSION
    assert db(filled, "stats")["schemaVersion"] == VERSION


def test_a_newer_store_is_refused_by_every_command_and_left_alone(filled: Path) -> None:
    path = filled / "context.db"
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", VERSION + 1)
    connection.close()
    before = path.read_bytes()
    for arguments in COMMANDS:
        assert f"schema version {VERSION + 1}" in refusal(filled, *arguments), arguments
    other = filled / "other"
    other.mkdir()
    assert f"schema version {VERSION + 1}" in refusal(other, "restore", str(path))
    doctor = run_cli("doctor", state_dir=filled)
    assert doctor.returncode == 1
    assert f"schema version {VERSION + 1}" in doctor.stdout
    with Host(filled, initialized=False, engine="full") as host:
        error = host.refusal("initialize", capabilities={})
        assert error.code == 1006
        assert f"schema version {VERSION + 1}" in str(error)
    assert path.read_bytes() == before
    assert list(other.iterdir()) == []


def test_commands_on_a_state_directory_without_a_store_say_so_and_make_none(tmp_path: Path) -> None:
    for arguments in COMMANDS:
        assert "no store" in refusal(tmp_path, *arguments), arguments
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_memory_has_nothing_to_look_after(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[store]\nkind = "memory"\n')
    assert "memory" in refusal(tmp_path, "check", "--config", str(config))
