"""The suite for clients, and how its checks are written down."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from sidecar.conformance.client.subject import Client
from sidecar.conformance.kit import Check, Level, NotDeclared, Suite, SuiteFault, Violation
from sidecar.conformance.server.process import Unusable

FEATURES = {
    "cancelling": "a request can be taken back by the operation `cancel`",
    "timeouts": "a request can be given `timeoutMs`",
    "deltas": "the operation `assemble` asks for edits and yields whole lists",
    "notifications": "notifications of the server reach the runtime",
    "progress": "`$/progress` reaches the runtime",
    "runtime/complete": "the runtime answers this request, as the operation `open` says",
    "memory/getContext": "the runtime answers this request, and offers the `sources` of the operation `open`",
}
"""What a driver may declare of its client."""

CLIENT_SUITE: Suite[Client] = Suite("client", FEATURES)
"""Every check of a client."""


def check(
    area: str, *clauses: str, needs: tuple[str, ...] = (), level: Level = "must"
) -> Callable[[Callable[[Client], None]], Callable[[Client], None]]:
    """Adds the decorated function to the suite; its docstring says what the clauses come to here."""

    def add(run: Callable[[Client], None]) -> Callable[[Client], None]:
        async def in_thread(client: Client) -> None:
            try:
                await asyncio.to_thread(run, client)
            except (Violation, NotDeclared, Unusable):
                raise
            except Exception as error:
                raise SuiteFault(f"{type(error).__name__}: {error}") from error

        text = re.sub(r"\s+", " ", run.__doc__ or "").strip()
        rule = f"{text} [{', '.join(clauses)}]"
        CLIENT_SUITE.add(Check(f"{area}/{run.__name__}", rule, in_thread, level, frozenset(needs), 120.0))
        return run

    return add
