"""A host that asks for it hears of sessions that other processes on its store have changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.sidecar_host import Host
from tests.postgres_server import shared_server

WATCHING = ["session/changed"]
TALK = [
    {"role": role, "content": f"{role} {number}: " + "granite and basalt " * 100}
    for number in range(30)
    for role in ("user", "assistant")
]

Configure = Callable[[Path], dict[str, Any]]

STORES: dict[str, Configure] = {
    "sqlite": lambda folder: {"store": {"kind": "sqlite", "path": str(folder / "context.db")}},
    "postgres": lambda folder: {"store": {"kind": "postgres", "url": shared_server().fresh()}},
}


@pytest.fixture(params=STORES)
def config(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    return STORES[request.param](tmp_path)


def _root(folder: Path) -> dict[str, str]:
    """The operator's folder, below which hosts may name their store."""
    return {"CONTEXT_SIDECAR_STATE_DIR": str(folder)}


def told(host: Host) -> list[tuple[str, str]]:
    """Which sessions changed, and how, without repetitions."""
    found = [n["params"] for n in host.notifications if n["method"] == "session/changed"]
    return list(dict.fromkeys((params["sessionId"], params["reason"]) for params in found))


def until_told(host: Host, session_id: str, reason: str) -> None:
    host.until(lambda: (session_id, reason) in told(host), f"{session_id} {reason} was not told")
    host.notifications.clear()


def test_what_another_process_does_to_sessions_is_told(tmp_path: Path, config: dict[str, Any]) -> None:
    with (
        Host(
            tmp_path / "agent",
            environment=_root(tmp_path),
            config=config,
            namespace="shared",
            engine="lossless",
        ) as agent,
        Host(
            tmp_path / "viewer",
            environment=_root(tmp_path),
            config=config,
            namespace="shared",
            hostCapabilities=WATCHING,
        ) as viewer,
    ):
        agent.call("context/ingest", sessionId="s", message={"role": "user", "content": "first"})
        until_told(viewer, "s", "created")
        agent.call("context/ingestBatch", sessionId="s", messages=TALK)
        until_told(viewer, "s", "appended")
        shown = viewer.call("session/export", sessionId="s")["messages"]
        assert [each["message"]["content"] for each in shown][:1] == ["first"]
        assert agent.call("context/compact", sessionId="s", tokenBudget=4_000, force=True)["compacted"]
        until_told(viewer, "s", "changed")
        assert viewer.call("session/summaries", sessionId="s")["summaries"]
        agent.call("session/pin", sessionId="s", text="keep this")
        until_told(viewer, "s", "changed")
        agent.call("session/configure", sessionId="s", engine="full")
        until_told(viewer, "s", "changed")
        last = shown[0]["messageId"]
        agent.call("session/truncate", sessionId="s", afterMessageId=last)
        until_told(viewer, "s", "changed")
        agent.call("session/fork", sessionId="s", newSessionId="copy")
        until_told(viewer, "copy", "created")
        agent.call("session/delete", sessionId="s")
        until_told(viewer, "s", "deleted")


def test_what_the_viewer_assembles_follows_the_agent(tmp_path: Path, config: dict[str, Any]) -> None:
    with (
        Host(tmp_path / "agent", environment=_root(tmp_path), config=config, namespace="shared") as agent,
        Host(
            tmp_path / "viewer",
            environment=_root(tmp_path),
            config=config,
            namespace="shared",
            hostCapabilities=WATCHING,
        ) as viewer,
    ):
        for number in range(3):
            message = {"role": "user", "content": f"question {number}"}
            agent.call("context/ingest", sessionId="s", message=message)
            until_told(viewer, "s", "appended" if number else "created")
            answer = viewer.call("context/assemble", sessionId="s")
            assert answer["messages"][-1] == message
            explained = viewer.call("context/explain", sessionId="s", resultId=answer["resultId"])
            assert len(explained["decisions"]) == number + 1


def test_other_namespaces_and_hosts_that_do_not_ask_hear_nothing(tmp_path: Path) -> None:
    config = STORES["sqlite"](tmp_path)
    with (
        Host(tmp_path / "agent", environment=_root(tmp_path), config=config, namespace="shared") as agent,
        Host(tmp_path / "plain", environment=_root(tmp_path), config=config, namespace="shared") as plain,
        Host(
            tmp_path / "other",
            environment=_root(tmp_path),
            config=config,
            namespace="other",
            hostCapabilities=WATCHING,
        ) as other,
        Host(
            tmp_path / "viewer",
            environment=_root(tmp_path),
            config=config,
            namespace="shared",
            hostCapabilities=WATCHING,
        ) as viewer,
    ):
        agent.call("context/ingest", sessionId="s", message={"role": "user", "content": "first"})
        until_told(viewer, "s", "created")
        for host in (plain, other):
            host.call("session/list")
            assert told(host) == []


def test_a_viewer_hears_of_what_it_does_itself_and_leaves_in_order(tmp_path: Path) -> None:
    with Host(tmp_path, namespace="shared", hostCapabilities=WATCHING) as viewer:
        viewer.call("context/ingest", sessionId="s", message={"role": "user", "content": "first"})
        until_told(viewer, "s", "created")
        viewer.call("session/delete", sessionId="s")
        until_told(viewer, "s", "deleted")
