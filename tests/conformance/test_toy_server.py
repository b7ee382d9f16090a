"""A small server that was written from the specification alone keeps every rule about what it declares."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from sidecar.conformance.server import SERVER_SUITE, check_server
from tests.missing_programs import program

pytestmark = pytest.mark.hosts

TOY_SERVER = str(Path(__file__).parents[2] / "spec" / "toy-server.mjs")
AREAS = list(dict.fromkeys(check.area for check in SERVER_SUITE if check.area != "schema"))

# What it leaves out. A check that needs none of these applies to it.
LEFT_OUT = {
    "context/afterTurn",
    "context/bootstrap",
    "context/explain",
    "context/preflight",
    "engine/doctor",
    "memory/compile",
    "memory/register",
    "session/configure",
    "session/fork",
    "session/pin",
    "session/pins",
    "session/truncate",
    "session/unpin",
    "subagent/ended",
    "subagent/prepareSpawn",
    "subagent/rollbackSpawn",
    "tools/call",
    "tools/list",
}


def applies(needs: Iterable[str]) -> bool:
    return LEFT_OUT.isdisjoint(needs)


@pytest.mark.timeout(400)  # a whole area on a busy machine
@pytest.mark.parametrize("area", AREAS)
def test_the_toy_server_keeps_the_rules(area: str) -> None:
    report = asyncio.run(
        check_server((program("node"), TOY_SERVER), patterns=[f"{area}/", "schema/"], limit_s=60)
    )
    found = {result.name: (result.outcome, result.message) for result in report.results}
    needs = {check.name: check.needs for check in SERVER_SUITE}
    expected = {name: "passed" if applies(needs[name]) else "undeclared" for name in found}
    wrong = {name: outcome for name, outcome in found.items() if outcome[0] != expected[name]}
    assert found
    assert wrong == {}
