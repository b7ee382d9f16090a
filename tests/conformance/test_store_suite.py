"""The suite for stores, run on every store of ours: each rule that a store claims to keep, it keeps."""

import asyncio
from typing import NamedTuple

import pytest

from sidecar.conformance.kit import Check, run_check
from sidecar.conformance.store import SUITE, MakePlace, Subject, providing
from sidecar.conformance.store.places import MemoryPlace, SQLitePlace
from sidecar.store import open_store
from sidecar.store.contract import SessionStore
from sidecar.store.search import Extract
from tests.postgres_server import shared_pooler, shared_server


class PostgresPlace:
    """The server of this test run."""

    capabilities = SQLitePlace.capabilities

    def __init__(self) -> None:
        self._url = shared_server().fresh()

    def store(self, extract: Extract) -> SessionStore:
        return open_store("postgres", url=self._url, extract=extract)

    def remove(self) -> None:
        pass


class PooledPlace(PostgresPlace):
    """The same server, where every transaction may have another connection to it."""

    def __init__(self) -> None:
        super().__init__()
        self._url = shared_pooler("transaction").url


class Case(NamedTuple):
    """A check on one of our stores."""

    kind: str
    make_place: MakePlace
    check: Check[Subject]


PLACES: dict[str, type[MemoryPlace | SQLitePlace | PostgresPlace]] = {
    "memory": MemoryPlace,
    "sqlite": SQLitePlace,
    "postgres": PostgresPlace,
    "pooled postgres": PooledPlace,
}
CASES = [
    Case(kind, place, check)
    for kind, place in PLACES.items()
    for check in SUITE
    if check.needs <= set(place.capabilities)
]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.kind}: {case.check.name}" for case in CASES])
def test_a_store_keeps_the_rule(case: Case) -> None:
    result = asyncio.run(run_check(case.check, providing(case.make_place)))
    assert result.outcome == "passed", f"{result.rule}\n{result.message}\n{result.trace}"


def test_what_is_not_run_on_a_store_is_what_it_cannot_offer() -> None:
    run = {(case.kind, case.check.name) for case in CASES}
    left_out = {check.name for check in SUITE for kind in PLACES if (kind, check.name) not in run}
    assert {name.partition("/")[0] for name in left_out} <= {"durability", "share", "episodes", "injected"}
    assert all("outlast" in name for name in left_out if not name.startswith(("durability/", "share/")))
    assert all((kind, check.name) in run for check in SUITE for kind in ("sqlite", "postgres"))
