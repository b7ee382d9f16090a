"""An agent waits for another agent's session as long as for a missing one: the store is asked the same."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sidecar.server.engines.registry import SessionEngines
from sidecar.server.sessions.registry import SessionRegistry
from sidecar.store.sqlite.memory import MemoryStore
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Delete
from tests.store_kit import Driver


class CountedReads(MemoryStore):
    """A store that counts what it is asked."""

    reads = 0

    async def read(self, question: Any) -> Any:
        """As `SessionReads.read`."""
        self.reads += 1
        return await super().read(question)


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver(CountedReads) as driver:
        driver.append(SessionRef("host", "theirs"), "hello", agent_id="them")
        yield driver


def sidecar(driver: Driver) -> Any:
    made = SimpleNamespace(
        store=driver.store,
        profile=SimpleNamespace(namespace="host"),
        ref=lambda session_id: SessionRef("host", session_id),
    )
    made.sessions = SessionRegistry(made)
    return made


def test_who_owns_it_takes_as_many_reads(driver: Driver) -> None:
    store, server = cast(CountedReads, driver.store), sidecar(driver)
    counts: list[int] = []
    for session_id in ("theirs", "missing"):
        before = store.reads
        driver.run(server.sessions.owner(session_id, "me"))
        counts.append(store.reads - before)
    assert counts[0] == counts[1]


def test_what_is_configured_for_it_takes_as_many_reads(driver: Driver) -> None:
    store, server = cast(CountedReads, driver.store), sidecar(driver)
    engines = SessionEngines(server)
    counts: list[int] = []
    for session_id in ("theirs", "missing"):
        owner, _ = driver.run(server.sessions.owner(session_id, "me"))
        before = store.reads
        driver.run(engines.of_session(session_id, "me", owner))
        counts.append(store.reads - before)
    assert counts[0] == counts[1]


def test_erasing_it_takes_as_many_statements(driver: Driver) -> None:
    dropped: list[int] = []
    tables = cast(Any, driver.store)._tables
    drop = tables.drop_belongings
    for session_id in ("theirs", "missing"):
        seen: list[SessionRef] = []
        tables.drop_belongings = lambda ref, seen=seen: (seen.append(ref), drop(ref))
        driver.write(Delete(SessionRef("host", session_id), agent_id="me"))
        dropped.append(len(seen))
    assert dropped[0] == dropped[1]
