"""A small client that was written from the specification alone keeps every rule that binds hosts."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.missing_programs import program

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]

TOY_CLIENT = Path(__file__).parents[2] / "spec" / "toy-client.rb"


def test_the_toy_client_keeps_the_rules() -> None:
    suite = [str(Path(sys.executable).with_name("context-sidecar")), "conformance", "client", "--quiet", "--"]
    done = subprocess.run(
        [*suite, program("ruby"), str(TOY_CLIENT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=280,
        check=False,
    )
    assert done.returncode == 0 and "0 failed" in done.stdout and "warn" not in done.stdout, done.stdout
