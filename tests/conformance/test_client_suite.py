"""The suite for clients, run on the Python client and on broken ones."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sidecar.conformance.client import CLIENT_SUITE, Client
from sidecar.conformance.kit import CheckResult, run_check
from tests.conformance.spoiling.clients import BROKEN

CHECKS = {check.name: check for check in CLIENT_SUITE}
DRIVER = (sys.executable, "-m", "tests.conformance.client_driver")
BROKEN_DRIVER = (sys.executable, "-m", "tests.conformance.spoiling.client_driver")


@pytest.fixture(autouse=True)
def from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


def result_for(name: str, *driver: str) -> CheckResult:
    """What the named check says of the client in a driver."""

    @asynccontextmanager
    async def subject() -> AsyncGenerator[Client]:
        yield Client(driver, limit_s=30)

    return asyncio.run(run_check(CHECKS[name], subject))


@pytest.mark.parametrize("name", CHECKS)
def test_our_client_keeps_the_rule(name: str) -> None:
    result = result_for(name, *DRIVER)
    assert result.outcome == "passed", result


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_client_is_caught_by_its_check(name: str, tmp_path: Path) -> None:
    result = result_for(name, *BROKEN_DRIVER, name, str(tmp_path))
    assert result.outcome == ("failed" if result.level == "must" else "warned"), result
    assert result.trace is None, result
    assert " within " not in str(result.message)


def test_every_check_has_a_broken_client() -> None:
    assert sorted(BROKEN) == sorted(CHECKS)


def test_a_driver_that_dies_is_reported_with_its_exit_status() -> None:
    dying = "import sys; print('{\"ready\": []}', flush=True); input(); sys.exit('the fan failed')"
    result = result_for("handshake/initialize_comes_first", sys.executable, "-c", dying)
    assert result.outcome == "failed"
    assert "ended with status 1" in str(result.message) and "the fan failed" in str(result.message)


def test_the_command_prints_how_a_driver_is_written() -> None:
    program = str(Path(sys.executable).with_name("context-sidecar"))
    done = subprocess.run([program, "conformance", "client", "--guide"], capture_output=True, text=True)
    assert "CEP_SIDECAR" in done.stdout and done.returncode == 0


def test_a_command_that_is_no_driver_is_told_in_one_line() -> None:
    program = str(Path(sys.executable).with_name("context-sidecar"))
    for command in (["/no/such/command"], [sys.executable, "-c", "print('{}')"]):
        arguments = [program, "conformance", "client", "--limit", "20", "--", *command]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=100)
        assert done.returncode == 1
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert "Traceback" not in done.stderr
