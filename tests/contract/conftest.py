"""Every kind of session store, for tests that hold for all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.store import open_store
from tests.store_kit import Driver


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driver]:
    """An open store without sessions."""
    with Driver(lambda: open_store(request.param, tmp_path / "state" / "store.db")) as driver:
        yield driver
