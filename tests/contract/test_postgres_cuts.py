"""A connection that is cut at the moment of a commit leaves every write done exactly once."""

from collections.abc import Iterator

import pytest

from sidecar.store.postgres.store import PostgresStore
from sidecar.store.writes import Append, Delete, RecordAdvancement, Truncate
from tests.cutting_proxy import Cut, CuttingProxy
from tests.postgres_server import shared_server
from tests.store_kit import REF, Driver, user


@pytest.fixture
def proxy() -> Iterator[CuttingProxy]:
    server = shared_server()
    server.fresh()
    with CuttingProxy(server.socket_path) as proxy:
        yield proxy


@pytest.fixture
def store(proxy: CuttingProxy) -> Iterator[Driver]:
    """A store that reaches its server by way of the proxy alone."""
    url = f"host=127.0.0.1 port={proxy.port} user=tests dbname=postgres sslmode=disable gssencmode=disable"
    with Driver(lambda: PostgresStore(url, wait_s=25)) as store:
        yield store


@pytest.mark.parametrize("cut", ["before", "after"])
def test_an_append_whose_commit_is_cut_is_stored_once(proxy: CuttingProxy, store: Driver, cut: Cut) -> None:
    for number in range(6):
        proxy.arm(cut)
        key = f"key {number}" if number % 2 else None
        result = store.append(REF, f"text {number}", advancement_key=key)
        assert (result.duplicate, [item.stored for item in result.items]) == (False, [True])
    assert proxy.cuts == 6
    assert store.texts(REF) == [f"text {number}" for number in range(6)]
    assert store.append(REF, "again", advancement_key="key 5").duplicate


@pytest.mark.parametrize("cut", ["before", "after"])
def test_other_writes_whose_commit_is_cut_take_effect_once(
    proxy: CuttingProxy, store: Driver, cut: Cut
) -> None:
    ids = [item.message_id for item in store.append(REF, "a", "b", "c").items]
    for write, result in (
        (RecordAdvancement(REF, "key"), True),
        (Truncate(REF, ids[1]), 1),
        (Delete(REF), True),
    ):
        proxy.arm(cut)
        assert store.write(write) == result
    assert proxy.cuts == 3
    assert store.texts(REF) == []


@pytest.mark.parametrize("cut", ["before", "after"])
def test_writes_under_load_stay_in_order_and_single_while_commits_are_cut(
    proxy: CuttingProxy, store: Driver, cut: Cut
) -> None:
    async def load() -> None:
        import asyncio

        for number in range(8):
            proxy.arm(cut)
            texts = [f"{number}-{index}" for index in range(30)]
            writes = [Append(REF, [user(text)], message_format="openai") for text in texts]
            await asyncio.gather(*(store.store.write(write) for write in writes))

    store.run(load())
    assert proxy.cuts == 8
    assert store.texts(REF) == [f"{number}-{index}" for number in range(8) for index in range(30)]
