"""A PostgreSQL store holds few connections, and leaves nothing in those that it shares with others."""

import asyncio
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from sidecar.store.errors import StoreUnavailable
from sidecar.store.postgres import pool as pools
from sidecar.store.postgres.connection import checked_conninfo, connect
from sidecar.store.postgres.pool import Pool
from sidecar.store.postgres.store import PostgresStore
from sidecar.store.search import SearchQuery
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Append
from tests.postgres_server import LIMIT_S, Pooler, PostgresServer, shared_pooler, shared_server
from tests.store_kit import REF, Driver, user

_COUNT = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'context-sidecar'"
_STATE = (
    "SELECT current_setting('search_path'), current_setting('lock_timeout'), "
    "current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout'), "
    "(SELECT count(*) FROM pg_prepared_statements), "
    "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())"
)


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def server(own_server: PostgresServer) -> PostgresServer:
    """A server without a store, which has no other guests."""
    own_server.fresh()
    return own_server


def connections(server: PostgresServer) -> int:
    with psycopg.connect(server.url) as watcher:
        found = watcher.execute(_COUNT).fetchone()
        assert found is not None
        return found[0]


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_is_told_by_the_process_id_that_it_makes_up(mode: str) -> None:
    pooled = shared_pooler("session" if mode == "session" else "transaction").url
    for url, expected in ((shared_server().url, False), (pooled, True)):
        connection = connect(checked_conninfo(url))
        assert connection.pooled is expected
        connection.close()


def test_statements_are_prepared_unless_there_is_a_pooler() -> None:
    pooled = shared_pooler("transaction").url
    for url, prepare, expected in (
        (shared_server().url, "auto", True),
        (shared_server().url, "off", False),
        (pooled, "auto", False),
        (pooled, "on", True),
    ):
        connection = connect(checked_conninfo(url), prepare=prepare)  # pyright: ignore[reportArgumentType]
        cursor = connection.cursor(binary=True)
        cursor.execute("BEGIN")
        for _ in range(8):
            cursor.execute("SELECT %s::int8 AS mine", (1,))
        found = cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%mine'")
        assert (found.fetchall()[0][0] > 0) is expected, (url, prepare)
        connection.close()


def test_a_store_leaves_nothing_in_a_connection_that_a_pooler_gives_to_others(server: PostgresServer) -> None:
    pooler = Pooler(server, size=1)
    try:
        with psycopg.connect(pooler.url, autocommit=True, prepare_threshold=None) as other:
            before = other.execute(_STATE).fetchone()
            with Driver(lambda: PostgresStore(pooler.url)) as store:
                for number in range(8):
                    store.append(REF, f"plum {number}")
                    assert len(store.texts(REF)) == number + 1
                    assert store.run(store.store.search(REF, SearchQuery(text="plum"))).hits
                    assert other.execute(_STATE).fetchone() == before
            assert other.execute(_STATE).fetchone() == before
    finally:
        pooler.remove()


def test_many_stores_share_two_connections_of_a_pooler(server: PostgresServer) -> None:
    pooler = Pooler(server, size=2)

    async def serve(number: int) -> None:
        store = PostgresStore(pooler.url, wait_s=25)
        await store.open()
        ref = SessionRef("host", f"s{number}")
        for count in range(1, 6):
            await store.write(Append(ref, [user("plum")], message_format="openai"))
            assert len(await store.messages(ref, 1, 10)) == count
        await store.close()

    async def serve_all() -> None:
        await asyncio.gather(*(serve(number) for number in range(16)))

    try:
        asyncio.run(asyncio.wait_for(serve_all(), 60))
        assert connections(server) <= 2
    finally:
        pooler.remove()


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["a pool of 20", "directly"])
def test_200_idle_and_64_busy_stores_are_served(server: PostgresServer, way: str) -> None:
    """With a hundred connections of the server, which is its default."""
    pooler = Pooler(server, size=20) if way == "a pool of 20" else None
    url = server.url if pooler is None else pooler.url
    took_s = list[float]()
    most_seen = 0

    async def serve(number: int, *, busy: bool) -> PostgresStore:
        store = PostgresStore(url, wait_s=60, connections=1 if pooler is None else 3)
        await store.open()
        ref = SessionRef("host", f"s{number}")
        for count in range(1, 41 if busy else 2):
            began = time.monotonic()
            await store.write(Append(ref, [user("plum")], message_format="openai"))
            took_s.append(time.monotonic() - began)
            assert len(await store.messages(ref, 1, 100)) == count
        return store

    async def watch() -> None:
        nonlocal most_seen
        while True:
            most_seen = max(most_seen, await asyncio.to_thread(connections, server))
            await asyncio.sleep(0.2)

    async def serve_all() -> None:
        watcher = asyncio.ensure_future(watch())
        idle = list[PostgresStore]()
        for first in range(0, 200, 20):
            idle += await asyncio.gather(*(serve(first + n, busy=False) for n in range(20)))
        took_s.clear()
        began = time.monotonic()
        busy = await asyncio.gather(*(serve(1000 + number, busy=True) for number in range(64)))
        ended = time.monotonic()
        watcher.cancel()
        took_s.sort()
        p50, p99 = (took_s[len(took_s) * percent // 100] * 1e3 for percent in (50, 99))
        print(
            f"{way}: {len(took_s) / (ended - began):.0f} writes and as many reads a second, "
            f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, at most {most_seen} connections of the server"
        )
        await asyncio.gather(*(store.close() for store in (*idle, *busy)))

    try:
        # A hundred connections are not enough for 264 stores that each keep one for 30 seconds.
        with pytest.MonkeyPatch.context() as patch:
            if pooler is None:
                patch.setattr(pools, "IDLE_S", 0.5)
            asyncio.run(serve_all())
    finally:
        if pooler is not None:
            pooler.remove()


def test_a_busy_store_has_no_more_connections_than_it_may(server: PostgresServer) -> None:
    for most in (1, 2, 3):
        most_seen = 0

        async def work(store: PostgresStore) -> None:
            nonlocal most_seen
            refs = [SessionRef("host", f"s{number}") for number in range(10)]
            for _ in range(5):
                await asyncio.gather(
                    *(store.write(Append(ref, [user("plum")], message_format="openai")) for ref in refs),
                    *(store.messages(ref, 1, 10) for ref in refs),
                    *(store.search(ref, SearchQuery(text="plum", for_answer=True)) for ref in refs),
                    *(store.search(ref, SearchQuery(text="plum")) for ref in refs),
                )
                most_seen = max(most_seen, await asyncio.to_thread(connections, server))

        with Driver(lambda most=most: PostgresStore(server.url, connections=most)) as driver:
            assert isinstance(driver.store, PostgresStore)
            driver.run(work(driver.store))
        assert 0 < most_seen <= most


def test_an_idle_store_has_no_connection_and_goes_on_with_a_new_one(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "IDLE_S", 0.05)
    monkeypatch.setattr(pools, "SPARE_S", 0.02)
    with Driver(lambda: PostgresStore(server.url)) as store:
        for number in range(3):
            store.append(REF, str(number))
            deadline = time.monotonic() + LIMIT_S
            while connections(server):
                assert time.monotonic() < deadline, "the connections stay open"
        assert store.texts(REF) == ["0", "1", "2"]


def test_a_store_goes_on_with_the_connections_that_a_full_server_leaves_it(server: PostgresServer) -> None:
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS few")
        admin.execute("CREATE ROLE few LOGIN CONNECTION LIMIT 2")
        admin.execute("GRANT CREATE ON DATABASE postgres TO few")

        async def serve(number: int) -> None:
            store = PostgresStore(server.url.replace("user=tests", "user=few"), wait_s=25)
            await store.open()
            ref = SessionRef("host", f"s{number}")
            for count in range(1, 4):
                write = Append(ref, [user("plum")], message_format="openai")
                _, found = await asyncio.gather(store.write(write), store.messages(ref, 1, 10))
                assert len(found) in (count - 1, count)
            await store.close()

        async def serve_all() -> None:
            await asyncio.gather(*(serve(number) for number in range(2)))

        asyncio.run(asyncio.wait_for(serve_all(), 60))
        admin.execute("ALTER ROLE few CONNECTION LIMIT 0")
        with (
            pytest.raises(StoreUnavailable, match="no connection left") as refused,
            Driver(lambda: PostgresStore(server.url.replace("user=tests", "user=few"), wait_s=0.3)),
        ):
            pass
        assert refused.value.retryable and "pooler" in refused.value.hint
        admin.execute("DROP OWNED BY few")
        admin.execute("DROP ROLE few")


def test_a_connection_that_is_given_back_inside_of_a_transaction_is_not_lent_again() -> None:
    pool = Pool(checked_conninfo(shared_server().url), most=1, prepare="auto")
    deadline = time.monotonic() + LIMIT_S
    with pool.lent(deadline) as first:
        first.cursor(binary=True).execute("BEGIN")
    assert first.closed
    with pool.lent(deadline) as second, pytest.raises(psycopg.Error):
        second.cursor(binary=True).execute("SELECT nothing")
    assert not second.closed
    with pool.lent(deadline) as third:
        assert third is second
    pool.close()
    assert third.closed


def test_requests_end_in_time_although_the_server_has_stopped_in_the_middle(server: PostgresServer) -> None:
    with Driver(lambda: PostgresStore(server.url, wait_s=1.0)) as store:
        store.append(REF, "a")
        assert store.texts(REF) == ["a"]
        server.pause()
        try:
            for ask in (lambda: store.append(REF, "b"), lambda: store.texts(REF)):
                began = time.monotonic()
                with pytest.raises(StoreUnavailable) as refused:
                    ask()
                assert refused.value.retryable
                assert time.monotonic() - began < 10
            began = time.monotonic()
            with pytest.raises(StoreUnavailable), Driver(lambda: PostgresStore(server.url, wait_s=1.0)):
                pass
            assert time.monotonic() - began < 10
        finally:
            server.resume()
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                store.append(REF, "c")
                break
            except StoreUnavailable:
                assert time.monotonic() < deadline
        # Nobody knows whether the append was carried out that was not answered.
        assert store.texts(REF) in (["a", "c"], ["a", "b", "c"])


def test_a_commit_that_waits_for_a_standby_takes_up_few_connections_and_stops_no_read(
    server: PostgresServer,
) -> None:
    with Driver(lambda: PostgresStore(server.url, wait_s=1.0)) as store:
        store.append(REF, "a")
        with psycopg.connect(server.url, autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            admin.execute("SELECT pg_reload_conf()")
            try:
                # The server takes a moment to heed it.
                with pytest.raises(StoreUnavailable):
                    for _ in range(1000):
                        store.append(REF, "b")
                ends = time.monotonic() + 6
                while time.monotonic() < ends:
                    with pytest.raises(StoreUnavailable):
                        store.append(REF, "b")
                    assert store.texts(REF)[:1] == ["a"]
                found = admin.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                ).fetchone()
                # That of the batch, and perhaps one in which the message before was indexed.
                assert found in ((1,), (2,))
            finally:
                admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
                admin.execute("SELECT pg_reload_conf()")
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                store.append(REF, "c")
                break
            except StoreUnavailable:
                assert time.monotonic() < deadline
        assert store.texts(REF)[-1] == "c"
    assert threading.active_count() < 50
