"""The suite for servers, and how its checks are written down."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from sidecar.conformance.checks import Check, Level, Suite
from sidecar.conformance.expecting import NotDeclared, SuiteFault, Violation
from sidecar.conformance.server.subject import Server
from sidecar.protocol.methods import METHODS

METHOD_NAMES = frozenset(method.name for method in METHODS if method.direction != "serverToHost")

SERVER_SUITE: Suite[Server] = Suite("server", METHOD_NAMES)
"""Every check of a server."""

_CLAUSE = re.compile(r"CEP-[A-Z]+-\d+")


def check(
    area: str, *clauses: str, needs: tuple[str, ...] = (), level: Level = "must", limit_s: float = 120.0
) -> Callable[[Callable[[Server], None]], Callable[[Server], None]]:
    """Adds the decorated function to the suite; its docstring says what the clauses come to here."""

    def add(run: Callable[[Server], None]) -> Callable[[Server], None]:
        async def in_thread(server: Server) -> None:
            try:
                await asyncio.to_thread(run, server)
            except (Violation, NotDeclared):
                raise
            except Exception as error:
                raise SuiteFault(f"{type(error).__name__}: {error}") from error

        text = re.sub(r"\s+", " ", run.__doc__ or "").strip()
        name = f"{area}/{run.__name__}"
        rule = f"{text} [{', '.join(clauses)}]"
        SERVER_SUITE.add(Check(name, rule, in_thread, level, frozenset(needs), limit_s))
        return run

    return add


def clauses_of(check: Check[Server]) -> list[str]:
    """The clauses of the specification that a check is about."""
    return _CLAUSE.findall(check.rule)
