"""Runs the suite for servers against a command."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext

from sidecar.conformance.kit import CheckResult, Report, chosen, report_of, run_checks
from sidecar.conformance.server import checks as _checks
from sidecar.conformance.server.process import Unusable
from sidecar.conformance.server.subject import LIMIT_S, SERVER_SUITE, Server

__all__ = ["SERVER_SUITE", "check_server"]

_checks.load()


async def check_server(
    command: Sequence[str],
    *,
    patterns: Collection[str] = (),
    expected: Collection[str] = (),
    limit_s: float = LIMIT_S,
    told: Callable[[CheckResult], object] | None = None,
    own_home: bool = False,
) -> Report:
    """The report on the server that a command starts; checks of what it does not declare are not run.

    The server has an empty home, unless it is to have the user's own.

    `expected` names checks that are known to fail; `told` is called with each result as it comes.

    Raises:
        Unusable: the command does not start, or `initialize` fails.
        ValueError: no check has a name with one of the patterns in it, or an expected one does not exist.
    """
    checks = chosen(SERVER_SUITE, patterns, expected)
    server = Server(command, limit_s=limit_s, own_home=own_home)
    try:
        declared = _declared(server)
        results = await run_checks(
            checks, lambda: nullcontext(server), declared, expected=expected, told=told
        )
    finally:
        server.close()
    return report_of(SERVER_SUITE.name, " ".join(command), declared, results)


def _declared(server: Server) -> frozenset[str]:
    methods = server.shared().offer.get("methods")
    if not isinstance(methods, list):
        raise Unusable("the answer to initialize has no capabilities.experimental.contextEngine.methods")
    return frozenset(str(method) for method in methods) & SERVER_SUITE.capabilities
