"""A store that an earlier version has left is served with all that was in it, keys and spawns included."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from msgspec import json

from sidecar.store.postgres import schema as postgres
from sidecar.store.sqlite import schema as sqlite
from tests.e2e.sidecar_host import Host, history
from tests.e2e.talk import Talk
from tests.postgres_server import shared_server

TALK = Talk("openai")
MISSING = 1003
NAMESPACE = "old"
SAID = [TALK.user("plum one"), TALK.assistant("plum two")]

Insert = Callable[[str, dict[str, Any]], None]


def without_agents(migrations: Sequence[str]) -> range:
    """The versions that had spawns, but neither spawns nor keys of agents."""
    spawns = next(n for n, made in enumerate(migrations, 1) if "TABLE spawns" in made)
    return range(spawns, next(n for n, made in enumerate(migrations, 1) if "child_agent_id" in made))


def fill(insert: Insert) -> None:
    """Two sessions of agents with keys and one of nobody, settings, a key of a turn, and two spawns."""
    for uid, (name, agent) in enumerate([("of-a", "a"), ("of-b", "b"), ("child", None)], start=1):
        session: dict[str, Any] = {"uid": uid, "namespace": NAMESPACE, "session_id": name}
        session |= {"message_format": "openai", "tag": f"tag{uid}", "agent_id": agent, "session_key": name}
        session |= {"created_ms": 1, "updated_ms": 2, "revision": uid << 20, "message_count": len(SAID)}
        session |= {"lift": 0, "turn_count": 1, "turn_opened": True, "turn_label": None, "shared": 0}
        insert("sessions", session)
        insert("session_keys", {"namespace": NAMESPACE, "session_key": name, "session": uid})
        for position, message in enumerate(SAID, start=1):
            row: dict[str, Any] = {"row_id": uid * 10 + position, "session": uid, "position": position}
            row |= {"turn": 1, "role": message["role"][0], "timestamp_ms": 1, "flags": 0}
            row |= {"name": f"m{position}", "body": json.encode(message)}
            insert("messages", row)
    insert("settings", {"namespace": NAMESPACE, "scope": "session", "scope_id": "of-a", "engine": "full"})
    turn = {"namespace": NAMESPACE, "session_id": "of-a", "advancement_key": "t1"}
    insert("advancement_keys", turn)
    spawn: dict[str, Any] = {"namespace": NAMESPACE, "parent_key": "of-a", "mode": "isolated"}
    spawn |= {"inherited": 0, "prepared_ms": 1}
    insert("spawns", {**spawn, "preparation_id": "p1", "child_key": "child", "child_id": "child"})
    insert("spawns", {**spawn, "preparation_id": "p2", "child_key": "never-began"})


def sqlite_of_version(folder: Path, version: int) -> dict[str, Any]:
    """A file as that version left it; the configuration that names it."""
    folder.mkdir(mode=0o700, parents=True)
    connection = apsw.Connection(str(folder / "context.db"))
    for statements in sqlite.MIGRATIONS[:version]:
        connection.execute(statements)
    connection.execute(f"PRAGMA user_version = {version}; PRAGMA application_id = {0x43455053}")
    fill(lambda table, row: _insert(connection, table, row, "?"))
    connection.close()
    return {}


def postgres_of_version(folder: Path, version: int) -> dict[str, Any]:
    """The same in a database."""
    del folder
    url = shared_server().fresh()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA context_sidecar")
        connection.execute("SET search_path = context_sidecar")
        connection.execute("CREATE TABLE schema_version (version BIGINT NOT NULL)")
        connection.execute("INSERT INTO schema_version VALUES (%s)", (version,))
        for statements in postgres.MIGRATIONS[:version]:
            connection.execute(statements.encode())
        fill(lambda table, row: _insert(connection, table, row, "%s"))
        connection.execute("SELECT setval('message_rows', 257)")
        connection.execute("SELECT setval(pg_get_serial_sequence('sessions', 'uid'), 9)")
    return {"store": {"kind": "postgres", "url": url}}


def _insert(connection: Any, table: str, row: dict[str, Any], place: str) -> None:
    values: Sequence[Any] = list(row.values())
    places = ", ".join(place for _ in values)
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", values)


@pytest.mark.parametrize(
    ("make", "version"),
    [
        *((sqlite_of_version, version) for version in without_agents(sqlite.MIGRATIONS)),
        *((postgres_of_version, version) for version in without_agents(postgres.MIGRATIONS)),
    ],
)
def test_sessions_keys_and_spawns_of_an_old_store_go_on(
    tmp_path: Path, make: Callable[[Path, int], dict[str, Any]], version: int
) -> None:
    state = tmp_path / "state"
    config = make(state, version)
    with Host(state, config=config, namespace=NAMESPACE) as host:
        for name in ("of-a", "of-b", "child"):
            assert history(host, name) == SAID
        assert host.call("session/get", sessionId="of-a", agentId="a")["engine"] == "full"
        again = {"sessionId": "of-a", "agentId": "a", "advancementKey": "t1", "messages": SAID}
        assert host.call("context/commitTurn", **again)["status"] == "duplicate"
        fork = {"parentSessionKey": "of-a", "childSessionKey": "forked", "contextMode": "fork"}
        assert host.refusal("subagent/prepareSpawn", **fork, agentId="b").code == MISSING
        host.call("subagent/prepareSpawn", **fork, agentId="a", childSessionId="forked")
        host.restart(kill=True)
        assert history(host, "forked") == SAID
        assert host.call("subagent/rollbackSpawn", preparationId="p2", agentId="a")["rolledBack"]
        host.call("subagent/ended", childSessionKey="of-b", reason="deleted")
        host.call("subagent/ended", childSessionKey="child", reason="deleted")
        left = {entry["sessionId"] for entry in host.call("session/list")["sessions"]}
        assert left == {"of-a", "of-b", "forked"}
        host.call("context/ingest", sessionId="of-b", agentId="b", message=TALK.user("later"))
        assert history(host, "of-b") == [*SAID, TALK.user("later")]
