"""Writes the tables about the suites: what each check catches, and which clauses it is about."""

from collections.abc import Iterator
from pathlib import Path

from sidecar.conformance.client import CLIENT_SUITE
from sidecar.conformance.server import SERVER_SUITE
from tests.conformance import test_broken_engines
from tests.conformance.spoiling.clients import BROKEN
from tests.conformance.spoiling.table import SPOILT
from tests.conformance.test_broken_stores import CAUGHT
from tests.conformance.tracing import REQUIREMENTS, TRACEABILITY, requirements, traceability

BROKEN_PEERS = Path(__file__).with_name("broken-peers.md")
_HEAD = """\
# Broken peers

<!-- Written by `python -m tests.conformance.tables`; tests hold it to the tables that it is made of. -->

A check is worth something only if it fails where its rule is broken. Each check of the suites has a peer of
its own that is right in all but one thing, and `make test` proves that the check catches it.
"""


def broken_peers() -> str:
    """The page, as it has to be."""
    return "\n".join([_HEAD, *_servers(), "", *_clients(), "", *_engines(), "", *_stores()]) + "\n"


def _servers() -> Iterator[str]:
    yield "## Servers"
    yield ""
    yield "Our server behind a proxy (`spoiling/`), which spoils one thing on the way."
    yield ""
    yield "| check | is broken by a server that |"
    yield "| --- | --- |"
    for check in SERVER_SUITE:
        yield f"| `{check.name}` | {SPOILT[check.name].what} |"


def _clients() -> Iterator[str]:
    yield "## Clients"
    yield ""
    yield "Our Python client behind the same kind of proxy, or in a driver that tells one untruth."
    yield ""
    yield "| check | is broken by a client that |"
    yield "| --- | --- |"
    for check in CLIENT_SUITE:
        yield f"| `{check.name}` | {BROKEN[check.name].what} |"


def _engines() -> Iterator[str]:
    yield "## Engines"
    yield ""
    yield "Our engine `full` with one of its methods replaced (`broken_engines.py`), in a real sidecar."
    yield ""
    yield "| check | is broken by an engine that |"
    yield "| --- | --- |"
    for check, broken in test_broken_engines.CAUGHT.items():
        yield f"| `{check}` | {test_broken_engines.described(broken)} |"


def _stores() -> Iterator[str]:
    yield "## Stores"
    yield ""
    yield "Our store in memory, with one of its methods replaced (`broken_stores.py`)."
    yield ""
    yield "| check | is broken by a store that |"
    yield "| --- | --- |"
    for check, broken in CAUGHT.items():
        yield f"| `{check}` | {broken.replace('_', ' ')} |"


if __name__ == "__main__":
    BROKEN_PEERS.write_text(broken_peers(), encoding="utf-8")
    TRACEABILITY.write_text(traceability(), encoding="utf-8")
    REQUIREMENTS.parent.mkdir(exist_ok=True)
    REQUIREMENTS.write_text(requirements(), encoding="utf-8")
