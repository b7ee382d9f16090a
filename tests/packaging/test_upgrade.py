"""A store in use goes from the last version with an older schema to the build, and not back."""

import ast
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from sidecar.store.sqlite.schema import VERSION
from tests.e2e.sidecar_host import Host, Refused
from tests.packaging.conftest import ROOT

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]

SCHEMA = "sidecar/store/sqlite/schema.py"
MESSAGES = 60
SEARCH = {"mode": "search", "query": "still runs"}


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, timeout=60).stdout


def schema_version(commit: str) -> int:
    """The version of the store that a commit makes, from its source."""
    for statement in ast.parse(git("show", f"{commit}:{SCHEMA}")).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="MIGRATIONS")], value=ast.Tuple(elts=steps)):
                return len(steps)
            case _:
                pass
    raise AssertionError(f"{commit} has no MIGRATIONS in {SCHEMA}")


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], dict[str, str], int]:
    """The last commit whose store is older: its command, environment and schema version."""
    commits = git("log", "--format=%H", "--", SCHEMA).decode().split()
    versions = ((commit, schema_version(commit)) for commit in commits)
    commit, version = next((found for found in versions if found[1] < VERSION), ("", 0))
    assert commit, "this needs the history of the repository: git fetch --unshallow"
    folder = tmp_path_factory.mktemp("older")
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit, "sidecar"))) as archive:
        archive.extractall(folder, filter="data")
    command = [sys.executable, "-P", "-m", "sidecar.cli.main", "serve"]
    return command, {"PYTHONPATH": str(folder)}, version


def conversation(count: int) -> list[dict[str, object]]:
    """Messages of every shape that a store keeps apart."""
    messages: list[dict[str, object]] = [{"role": "system", "content": "Be brief.", "extra": {"kept": [1.0]}}]
    for number in range(count):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages += [
            {"role": "user", "content": f"question {number} about Grüße and 漢字"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"result {number} " + "x" * 500},
        ]
    return messages


def exported(host: Host, session: str) -> list[dict[str, object]]:
    """Everything that the store has of a session, as it came."""
    found: list[dict[str, object]] = []
    cursor: dict[str, str] = {}
    while True:
        page = host.call("session/export", sessionId=session, **cursor)
        found += page["messages"]
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


def searched(host: Host) -> str:
    """What the model is told of a search."""
    return str(host.call("tools/call", sessionId="whole", name="context_search", arguments=SEARCH))


def test_a_store_in_use_is_upgraded_without_loss_and_refused_on_the_way_back(
    program: Path, tmp_path: Path, older: tuple[list[str], dict[str, str], int]
) -> None:
    command, environment, version = older
    state, build = tmp_path / "state", (str(program), "serve")
    said = conversation(MESSAGES)
    with Host(state, command=command, environment=environment) as old:
        for session in ("whole", "forked"):
            old.call("context/ingestBatch", sessionId=session, messages=said)
        old.call("session/fork", sessionId="forked", newSessionId="fork")
        old.call("context/compact", sessionId="whole", tokenBudget=4_000, force=True)
        before = {session: exported(old, session) for session in ("whole", "forked", "fork")}
        with Host(state, command=build) as new:
            assert {session: exported(new, session) for session in before} == before
            late = {"role": "user", "content": "the old process still runs"}
            old.call("context/ingest", sessionId="whole", message=late)
            assert [each["message"] for each in exported(new, "whole")][-1] == late
            assert "the old process" in searched(new)
            new.call("context/ingest", sessionId="forked", message=late)
    with Host(state, command=command, environment=environment, initialized=False) as old:
        with pytest.raises(Refused, match=f"knows up to {version}") as refusal:
            old.initialize()
        assert "Update context-sidecar" in refusal.value.data["hint"]
    with Host(state, command=build) as new:
        assert len(exported(new, "whole")) == len(exported(new, "forked")) == len(said) + 1
