"""A restore that is killed at any moment loses neither the old store nor the new one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.store.sqlite.upkeep.replacement import remains
from tests.client_kit import LIMIT_S, SidecarClient, run_cli, user, with_sidecar

KILLED = """
import os, sys
from pathlib import Path
from sidecar.cli.commands import run
left = int(sys.argv[1])
real = Path.rename
def rename(self, target):
    global left
    if left == 0:
        os._exit(9)
    left -= 1
    return real(self, target)
Path.rename = rename
sys.exit(run(sys.argv[2:]))
"""


def stored(state: Path, session: str) -> None:
    async def tell(client: SidecarClient) -> None:
        await client.ingest(session, user("hello"))

    with_sidecar(state, tell, engine="full")


def sessions(state: Path) -> list[str]:
    listed = run_cli("sessions", "list", "--json", state_dir=state)
    return [one["sessionId"] for one in json.loads(listed.stdout)["sessions"]]


@pytest.mark.parametrize("renames", [0, 1])
def test_a_restore_killed_between_its_renames_is_finished_by_the_next_start(
    renames: int, tmp_path: Path
) -> None:
    state, copy = tmp_path / "state", tmp_path / "copy.db"
    stored(tmp_path / "other", "restored")
    assert run_cli("db", "backup", str(copy), state_dir=tmp_path / "other").returncode == 0
    stored(state, "replaced")
    command = ("db", "restore", str(copy), "--replace", "--state-dir", str(state))
    killed = subprocess.run(
        [sys.executable, "-P", "-c", KILLED, str(renames), *command], timeout=LIMIT_S, check=False
    )
    assert killed.returncode == 9
    assert remains(state / "context.db")
    assert sessions(state) == ["restored"]
    assert remains(state / "context.db") == []
    kept = min(state.glob("context.db.replaced-*"), key=lambda path: len(path.name))
    shutil.copy(kept, tmp_path / "context.db")
    assert sessions(tmp_path) == ["replaced"]


def test_what_a_restore_killed_while_copying_has_left_is_removed_by_the_next_start(tmp_path: Path) -> None:
    state = tmp_path / "state"
    stored(state, "mine")
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    (state / "context.db.restoring").write_text(json.dumps({"pid": int(done.stdout)}))
    (state / "context.db.restored.part").write_bytes(b"erased long ago")
    assert sessions(state) == ["mine"]
    assert remains(state / "context.db") == []
