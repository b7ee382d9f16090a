"""The commands that look after a store, for one in PostgreSQL."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sidecar.store.postgres.schema import VERSION
from sidecar.store.postgres.store import PostgresStore
from tests.client_kit import run_cli
from tests.old_postgres_store import make_store_of_version
from tests.postgres_server import shared_server
from tests.store_kit import REF, Driver


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Driver]:
    """A store in use, which the configuration in the state directory names."""
    url = shared_server().fresh()
    (tmp_path / "config.toml").write_text(f'[store]\nkind = "postgres"\nurl = "{url}"\n')
    with Driver(lambda: PostgresStore(url)) as store:
        store.append(REF, *[f"{n} " + "x" * 3000 for n in range(200)])
        yield store


def run(folder: Path, *arguments: str, code: int = 0) -> Any:
    """What a command tells as JSON, or the line with which it refuses."""
    config = str(folder / "config.toml")
    done = run_cli("db", *arguments, "--json", "--config", config, state_dir=folder)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if done.stdout else done.stderr


def change(statement: str) -> None:
    """Change the tables behind the store's back."""
    with psycopg.connect(shared_server().url, autocommit=True) as connection:
        connection.execute("SET search_path = context_sidecar")
        connection.execute(statement)


def test_a_store_on_a_server_is_checked_and_measured_while_it_is_used(tmp_path: Path, store: Driver) -> None:
    assert run(tmp_path, "check")["ok"]
    found = run(tmp_path, "stats")
    assert (found["kind"], found["sessions"], found["messages"]) == ("postgres", 1, 200)
    assert found["bytes"] >= found["tableBytes"]["messages"] > 0
    change("DELETE FROM messages WHERE position = 9")
    wrong = [check["name"] for check in run(tmp_path, "check", code=1)["checks"] if not check["ok"]]
    assert wrong == ["messages of sessions"]


@pytest.mark.parametrize("options", [(), ("--full",)])
def test_a_store_on_a_server_is_vacuumed_while_it_is_used(
    tmp_path: Path, store: Driver, options: tuple[str, ...]
) -> None:
    sizes = run(tmp_path, "vacuum", *options)
    assert sizes["bytesBefore"] > 0
    assert len(store.texts(REF)) == 200


def test_for_backups_the_tools_of_the_server_are_named(tmp_path: Path, store: Driver) -> None:
    (tmp_path / "file").write_text("")
    assert "pg_dump" in run(tmp_path, "backup", str(tmp_path / "copy"), code=1)
    assert "pg_restore" in run(tmp_path, "restore", str(tmp_path / "file"), code=1)
    assert "pg_dump" in run(tmp_path, "recover", "--out", str(tmp_path / "copy"), code=1)
    assert not (tmp_path / "copy").exists()


def test_an_older_store_on_a_server_is_migrated(tmp_path: Path, store: Driver) -> None:
    assert run(tmp_path, "migrate") == {"versionBefore": VERSION, "versionAfter": VERSION, "newest": VERSION}
    store.run(store.store.close())
    make_store_of_version(shared_server().fresh(), 1)
    assert "db migrate" in run(tmp_path, "stats", code=1)
    assert run(tmp_path, "migrate", "--dry-run")["versionAfter"] == 1
    assert run(tmp_path, "migrate") == {"versionBefore": 1, "versionAfter": VERSION, "newest": VERSION}
    assert run(tmp_path, "check")["ok"]


def test_a_newer_store_on_a_server_is_refused(tmp_path: Path, store: Driver) -> None:
    change(f"UPDATE schema_version SET version = {VERSION + 1}")
    for command in (("check",), ("stats",), ("vacuum",), ("migrate",), ("prune", "--older-than", "1")):
        assert f"schema version {VERSION + 1}" in run(tmp_path, *command, code=1), command
    doctor = run_cli("doctor", "--config", str(tmp_path / "config.toml"), state_dir=tmp_path)
    assert doctor.returncode == 1
    assert f"schema version {VERSION + 1}" in doctor.stdout


def test_a_database_without_a_store_is_told(tmp_path: Path, store: Driver) -> None:
    store.run(store.store.close())
    shared_server().fresh()
    assert "no store" in run(tmp_path, "check", code=1)
    assert "no store" in run(tmp_path, "migrate", code=1)
