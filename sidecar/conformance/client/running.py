"""Runs the suite for clients against a driver."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from sidecar.conformance.checks import Check
from sidecar.conformance.client import checks as _checks
from sidecar.conformance.client.subject import LIMIT_S, Client
from sidecar.conformance.client.suite import CLIENT_SUITE
from sidecar.conformance.expected import judged
from sidecar.conformance.report import CheckResult, Report
from sidecar.conformance.running import report_of, run_check, undeclared

__all__ = ["CLIENT_SUITE", "check_client"]

_checks.load()


async def check_client(
    command: Sequence[str],
    *,
    patterns: Collection[str] = (),
    expected: Collection[str] = (),
    limit_s: float = LIMIT_S,
    told: Callable[[CheckResult], object] | None = None,
) -> Report:
    """The report on the client inside the driver that a command starts.

    `expected` names checks that are known to fail; `told` is called with each result as it comes.

    Raises:
        Unusable: the command starts no driver.
        ValueError: no check has a name with one of the patterns in it, or an expected one does not exist.
    """
    selected = CLIENT_SUITE.selected(patterns)
    if not selected:
        raise ValueError(f"no check has one of these in its name: {', '.join(patterns)}")
    unknown = sorted(set(expected) - {check.name for check in CLIENT_SUITE})
    if unknown:
        raise ValueError(f"there are no checks of these names: {', '.join(unknown)}")
    client = Client(command, limit_s=limit_s)
    with client.stage() as stage:
        declared = stage.driver.features & CLIENT_SUITE.capabilities
    results: list[CheckResult] = []
    for check in selected:
        results.append(judged(await _result(check, client, declared), expected))
        if told is not None:
            told(results[-1])
    return report_of(CLIENT_SUITE.name, " ".join(command), declared, results)


async def _result(check: Check[Client], client: Client, declared: frozenset[str]) -> CheckResult:
    if not check.needs <= declared:
        return undeclared(check)

    @asynccontextmanager
    async def provide() -> AsyncGenerator[Client]:
        yield client

    return await run_check(check, provide)
