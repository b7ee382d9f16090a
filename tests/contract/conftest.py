"""Every kind of session store, for tests that hold for all of them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sidecar.store import open_store
from sidecar.store.contract import SessionStore
from tests.postgres_server import shared_server
from tests.store_kit import Driver

MakeStore = Callable[[], SessionStore]


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    """Makes stores of one kind that all stand for the same place, empty at first."""
    kind = request.param
    url = shared_server().fresh() if kind == "postgres" else None
    return lambda: open_store(kind, tmp_path / "state" / "store.db", url=url)


@pytest.fixture
def store(make_store: MakeStore) -> Iterator[Driver]:
    """An open store without sessions."""
    with Driver(make_store) as driver:
        yield driver
