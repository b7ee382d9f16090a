"""A PostgreSQL store of every earlier version is opened with everything that was in it."""

import pytest

from sidecar.store.postgres.schema import VERSION
from sidecar.store.postgres.store import PostgresStore
from tests.old_postgres_store import TEXTS, make_store_of_version
from tests.postgres_server import shared_server
from tests.search_kit import index_in_small_portions, positions, rest
from tests.store_kit import REF, Driver


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_messages_of_an_older_store_are_read_and_added_to(version: int) -> None:
    url = shared_server().fresh()
    make_store_of_version(url, version)
    with Driver(lambda: PostgresStore(url)) as store:
        assert store.texts(REF) == TEXTS
        store.append(REF, "plum three")
        assert store.texts(REF) == [*TEXTS, "plum three"]
        keyed = store.run(store.store.keyed(REF, 1, 3))
        assert [each.facts is not None for each in keyed] == [False, True, False]


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_messages_of_an_older_store_are_found(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    index_in_small_portions(monkeypatch)
    url = shared_server().fresh()
    make_store_of_version(url, version)
    with Driver(lambda: PostgresStore(url)) as store:
        assert sorted(positions(store, "plum")) == [1, 2]
        store.append(REF, "plum three", "plum four")
        rest(store)
        assert sorted(positions(store, "plum")) == [1, 2, 4, 5]
