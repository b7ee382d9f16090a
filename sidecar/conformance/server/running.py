"""Runs the suite for servers against a command."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from sidecar.conformance.checks import Check
from sidecar.conformance.expected import judged
from sidecar.conformance.report import CheckResult, Report
from sidecar.conformance.running import report_of, run_check, undeclared
from sidecar.conformance.server import checks as _checks
from sidecar.conformance.server.faults import Unusable
from sidecar.conformance.server.subject import LIMIT_S, Server
from sidecar.conformance.server.suite import SERVER_SUITE

__all__ = ["SERVER_SUITE", "check_server"]

_checks.load()


async def check_server(
    command: Sequence[str],
    *,
    patterns: Collection[str] = (),
    expected: Collection[str] = (),
    limit_s: float = LIMIT_S,
    told: Callable[[CheckResult], object] | None = None,
) -> Report:
    """The report on the server that a command starts; checks of what it does not declare are not run.

    `expected` names checks that are known to fail; `told` is called with each result as it comes.

    Raises:
        Unusable: the command does not start, or `initialize` fails.
        ValueError: no check has a name with one of the patterns in it, or an expected one does not exist.
    """
    selected = SERVER_SUITE.selected(patterns)
    if not selected:
        raise ValueError(f"no check has one of these in its name: {', '.join(patterns)}")
    unknown = sorted(set(expected) - {check.name for check in SERVER_SUITE})
    if unknown:
        raise ValueError(f"there are no checks of these names: {', '.join(unknown)}")
    server = Server(command, limit_s=limit_s)
    results: list[CheckResult] = []
    try:
        declared = _declared(server)
        for check in selected:
            results.append(judged(await _result(check, server, declared), expected))
            if told is not None:
                told(results[-1])
    finally:
        server.close()
    return report_of(SERVER_SUITE.name, " ".join(command), declared, results)


async def _result(check: Check[Server], server: Server, declared: frozenset[str]) -> CheckResult:
    if not check.needs <= declared:
        return undeclared(check)

    @asynccontextmanager
    async def provide() -> AsyncGenerator[Server]:
        yield server

    return await run_check(check, provide)


def _declared(server: Server) -> frozenset[str]:
    methods = server.shared().offer.get("methods")
    if not isinstance(methods, list):
        raise Unusable("the answer to initialize has no capabilities.experimental.contextEngine.methods")
    return frozenset(str(method) for method in methods) & SERVER_SUITE.capabilities
