"""Another agent's session takes as many reads as a missing one, so timing reveals nothing."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sidecar.messages.dialects import dialect
from sidecar.server.engines.registry import SessionEngines
from sidecar.server.profile import Host
from sidecar.server.sessions.registry import SessionRegistry
from sidecar.store.sqlite.memory import MemoryStore
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Delete
from sidecar.tokens.choose import counter
from tests.store_kit import Driver

HOST = Host(
    cast(Any, None), namespace="host", message_format="openai", capabilities=frozenset(), timeout_ms=1000
)


class CountedReads(MemoryStore):
    """A store that counts its reads."""

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


def registry(driver: Driver) -> SessionRegistry:
    return SessionRegistry(
        HOST,
        driver.store,
        dialect=dialect("openai"),
        counter=counter("estimate"),
        searching=driver.store,
        exempt=None,
        in_use=lambda _: False,
        cache_bytes=0,
    )


def test_who_owns_it_takes_as_many_reads(driver: Driver) -> None:
    store, sessions = cast(CountedReads, driver.store), registry(driver)
    counts: list[int] = []
    for session_id in ("theirs", "missing"):
        before = store.reads
        driver.run(sessions.owner(session_id, "me"))
        counts.append(store.reads - before)
    assert counts[0] == counts[1]


def test_what_is_configured_for_it_takes_as_many_reads(driver: Driver) -> None:
    store, sessions = cast(CountedReads, driver.store), registry(driver)
    loaded = SimpleNamespace(ready=lambda engine_id, config: SimpleNamespace(takes_note=False))
    engines = SessionEngines(
        HOST, store, cast(Any, loaded), exempt=None, sessions=lambda: sessions, take_note=lambda: None
    )
    counts: list[int] = []
    for session_id in ("theirs", "missing"):
        before = store.reads
        driver.run(engines.begin(session_id, "me", None))
        counts.append(store.reads - before)
    assert counts[0] == counts[1] == 1


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
