"""Our server keeps every rule that the suite for servers checks, and leaves none of them undeclared."""

import asyncio
import sys
from pathlib import Path

import pytest

from sidecar.conformance.server import SERVER_SUITE, check_server

COMMAND = (sys.executable, "-m", "sidecar.cli.main", "serve")
AREAS = list(dict.fromkeys(check.area for check in SERVER_SUITE if check.area != "schema"))


@pytest.mark.timeout(400)  # a whole area on a busy machine
@pytest.mark.parametrize("area", AREAS)
def test_our_server_keeps_the_rules(area: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    report = asyncio.run(check_server(COMMAND, patterns=[f"{area}/", "schema/"], limit_s=60))
    wrong = [(result.name, result.message) for result in report.results if result.outcome != "passed"]
    assert wrong == []
