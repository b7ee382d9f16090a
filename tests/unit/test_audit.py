"""The audit of locked dependencies distinguishes an advisory, silence and a clean answer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLEAN_PYTHON = '{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}'
BAD_PYTHON = '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1"}]}]}'
UNKNOWN_PYTHON = '{"dependencies": [{"name": "a", "skip_reason": "not found"}]}'
CLEAN_NODE = '{"vulnerabilities": {}}'
BAD_NODE = '{"vulnerabilities": {"b": {"severity": "high"}}}'
REFUSED_NODE = '{"message": "405 Method Not Allowed", "error": {}}'


@pytest.mark.parametrize(
    ("python", "node", "status", "says"),
    [
        (CLEAN_PYTHON, CLEAN_NODE, 0, "nothing is known against it"),
        (BAD_PYTHON, CLEAN_NODE, 1, "a 1: PYSEC-1"),
        (CLEAN_PYTHON, BAD_NODE, 1, "b: high"),
        (UNKNOWN_PYTHON, CLEAN_NODE, 0, "NOT CHECKED: the service knows nothing of 1 of 1 packages"),
        ("", CLEAN_NODE, 0, "NOT CHECKED: the service did not answer"),
        (CLEAN_PYTHON, REFUSED_NODE, 0, "NOT CHECKED: the service did not answer: 405 Method Not Allowed"),
    ],
)
def test_only_an_advisory_fails_and_silence_is_reported(
    python: str, node: str, status: int, says: str, tmp_path: Path
) -> None:
    (tmp_path / "pip_audit.py").write_text(f"print({python!r})")
    npm = tmp_path / "npm"
    npm.write_text(f"#!/bin/sh\necho '{node}'\n")
    npm.chmod(0o755)
    surroundings = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    command = [sys.executable, ".ci/audit"]
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False)
    assert says in done.stdout
    assert done.returncode == status


def test_the_list_of_licences_names_everything_that_is_locked() -> None:
    done = subprocess.run(
        [sys.executable, ".ci/licences", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode == 0
