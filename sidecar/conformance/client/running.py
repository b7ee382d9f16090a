"""Runs the suite for clients against a driver."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext

from sidecar.conformance.client import checks as _checks
from sidecar.conformance.client.subject import LIMIT_S, Client
from sidecar.conformance.client.suite import CLIENT_SUITE
from sidecar.conformance.kit import CheckResult, Report, chosen, report_of, run_checks

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
    checks = chosen(CLIENT_SUITE, patterns, expected)
    client = Client(command, limit_s=limit_s)
    with client.stage() as stage:
        declared = stage.driver.features & CLIENT_SUITE.capabilities
    results = await run_checks(checks, lambda: nullcontext(client), declared, expected=expected, told=told)
    return report_of(CLIENT_SUITE.name, " ".join(command), declared, results)
