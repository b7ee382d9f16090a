"""Two releases of the sidecar serve from one PostgreSQL while hosts are updated one after another."""

import ast
import io
import random
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from sidecar.store.postgres.schema import ADDITIONS, VERSION
from sidecar.store.postgres.upkeep import check
from tests.e2e.sidecar_host import Host, Refused, exported
from tests.missing_programs import program
from tests.postgres_server import shared_server

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parent.parent.parent
SCHEMA = "sidecar/store/postgres/schema.py"
SESSIONS = 8


def git(*arguments: str) -> bytes:
    command = [program("git"), *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60).stdout


def steps(commit: str, name: str) -> int:
    """How many migrations or additions the tables of a commit have, from its source."""
    for statement in ast.parse(git("show", f"{commit}:{SCHEMA}")).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=found)], value=ast.Tuple(elts=made)) if found == name:
                return len(made)
            case _:
                pass
    return 0


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """How to start the last release whose tables have the same version, and lack an addition."""
    commits = git("log", "--format=%H", "--", SCHEMA).decode().split()
    alike = (commit for commit in commits if steps(commit, "MIGRATIONS") == VERSION)
    commit = next((commit for commit in alike if steps(commit, "ADDITIONS") < len(ADDITIONS)), "")
    assert commit, "this needs the history of the repository: git fetch --unshallow"
    folder = tmp_path_factory.mktemp("previous")
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit, "sidecar"))) as archive:
        archive.extractall(folder, filter="data")
    return {
        "command": [sys.executable, "-P", "-m", "sidecar.cli.main", "serve"],
        "environment": {"PYTHONPATH": str(folder)},
    }


def request(chance: random.Random, number: int) -> tuple[str, dict[str, Any]]:
    """Any request that a runtime may send to one of the shared sessions."""
    session = f"s{chance.randrange(SESSIONS)}"
    message = {"role": "user", "content": f"text {number} {session}"}
    match chance.randrange(10):
        case 0:
            return "session/fork", {"sessionId": session, "newSessionId": f"{session}-{number}"}
        case 1:
            return "session/delete", {"sessionId": session}
        case 2:
            return "context/compact", {"sessionId": session, "tokenBudget": 2000}
        case 3 | 4 | 5:
            return "context/assemble", {"sessionId": session, "tokenBudget": 2000}
        case 6:
            arguments = {"mode": "search", "query": "text"}
            return "tools/call", {"sessionId": session, "name": "context_search", "arguments": arguments}
        case _:
            return "context/ingest", {"sessionId": session, "message": message}


def serve_together(tmp_path: Path, previous: dict[str, Any], requests: int) -> None:
    """Old and new sidecars start and end in turn, and answer requests about the same sessions."""
    url = shared_server().fresh()
    config = {"store": {"kind": "postgres", "url": url}}
    options: dict[str, Any] = {"engine": "default", "config": config, "namespace": "shared"}
    chance = random.Random(requests)
    with Host(tmp_path / "old", **options, **previous) as old, Host(tmp_path / "new", **options) as new:
        for first in range(0, requests, 20):
            asked = [
                (host, host.send(method, **params))
                for number in range(first, first + 20)
                for host in (old, new)
                for method, params in [request(chance, number)]
            ]
            for host, id in asked:
                try:
                    host.wait(id)
                except Refused as refused:
                    # A session that the other one has deleted, or has not made yet.
                    assert refused.code == 1003, refused
            if first % 100 == 0:
                for host in (old, new):
                    host.restart()
        for number in range(SESSIONS):
            for host in (old, new):
                host.call(
                    "context/ingest", sessionId=f"s{number}", message={"role": "user", "content": "end"}
                )
            assert exported(old, f"s{number}") == exported(new, f"s{number}")
    assert [finding for finding in check(url, lambda *_: None) if not finding.ok] == []


def test_the_previous_release_and_this_one_serve_from_one_database(
    tmp_path: Path, previous: dict[str, Any]
) -> None:
    serve_together(tmp_path, previous, 100)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_previous_release_and_this_one_serve_from_one_database_for_long(
    tmp_path: Path, previous: dict[str, Any]
) -> None:
    serve_together(tmp_path, previous, 4000)
