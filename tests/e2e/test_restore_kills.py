"""A restore that is killed at any moment loses neither the old store nor the new one."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sidecar.store.sqlite.upkeep.replacement import remains
from tests.client_kit import LIMIT_S, SidecarClient, run_cli, user, with_sidecar
from tests.missing_programs import program

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


def test_a_restore_killed_before_its_id_went_to_another_process_is_finished(tmp_path: Path) -> None:
    state = tmp_path / "state"
    stored(state, "mine")
    (state / "context.db.restoring").write_text(json.dumps({"pid": os.getpid(), "started": "long ago"}))
    assert sessions(state) == ["mine"]
    assert remains(state / "context.db") == []


MUTATING = (*("rename", "unlink", "fsync", "fdatasync", "ftruncate", "pwrite64", "fchmod", "link"), "write")


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_restore_killed_at_any_system_call_loses_neither_store(tmp_path: Path) -> None:
    stored(tmp_path / "other", "restored")
    stored(tmp_path / "old", "replaced")
    copy = tmp_path / "copy.db"
    assert run_cli("db", "backup", str(copy), state_dir=tmp_path / "other").returncode == 0
    state = tmp_path / "state"
    restore = [*(sys.executable, "-P", "-m", "sidecar.cli.main", "db", "restore", str(copy)), "--replace"]

    def traced(*options: str) -> int:
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(tmp_path / "old", state)
        command = [program("strace"), "-f", "-o", str(tmp_path / "calls"), *options, *restore]
        done = subprocess.run([*command, "--state-dir", str(state)], timeout=LIMIT_S, check=False)
        return done.returncode

    assert traced("-e", f"trace={','.join(MUTATING)}") == 0
    made = re.findall(r"^\d+ +(\w+)\(", (tmp_path / "calls").read_text(errors="replace"), re.MULTILINE)
    ends: set[str] = set()
    for name, count in Counter(made).items():
        for number in range(1, count + 1):
            killed = traced("-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={number}")
            assert killed == -signal.SIGKILL
            [left] = sessions(state)
            ends.add(left)
            assert remains(state / "context.db") == [], (name, number)
            kept = min(state.glob("context.db.replaced-*"), key=lambda path: len(path.name), default=None)
            if left == "restored":
                assert kept is not None, (name, number)
                shutil.rmtree(tmp_path / "kept", ignore_errors=True)
                (tmp_path / "kept").mkdir()
                shutil.copy(kept, tmp_path / "kept" / "context.db")
                assert sessions(tmp_path / "kept") == ["replaced"], (name, number)
    assert ends == {"restored", "replaced"}


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
