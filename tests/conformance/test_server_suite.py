"""The suite for servers, run on ours and on broken ones."""

import subprocess
import sys
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("context-sidecar"))
LIMIT_S = 110.0


def conformance(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "conformance", "server", *arguments], capture_output=True, text=True, timeout=LIMIT_S
    )


def test_a_command_that_is_no_server_is_told_in_one_line() -> None:
    for command in (["/no/such/command"], [sys.executable, "-c", "print('hello')"]):
        done = conformance("--limit", "5", "--", *command)
        assert done.returncode == 1
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert "Traceback" not in done.stderr


def test_a_known_failure_that_passes_is_an_error(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("lifecycle/set_trace  # it has none\n")
    done = conformance(
        "--only", "lifecycle/set_trace", "--expected-failures", str(known), "--", PROGRAM, "serve"
    )
    assert done.returncode == 1
    assert "remove the entry" in done.stdout


def test_an_unknown_known_failure_is_a_mistake_of_use(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text("no/such_check\n")
    done = conformance("--expected-failures", str(known), "--", PROGRAM, "serve")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no/such_check" in done.stderr
