"""What a PostgreSQL store does while its server is away, and what it refuses."""

import asyncio
import time
from collections.abc import Iterator

import psycopg
import pytest

from sidecar.store.errors import StoreUnavailable
from sidecar.store.postgres.store import PostgresStore
from sidecar.store.search import SearchQuery
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Append
from tests.postgres_server import PostgresServer, shared_server
from tests.store_kit import REF, Driver, user


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def server(own_server: PostgresServer) -> PostgresServer:
    """A running server without a store, which a test may stop."""
    own_server.fresh()
    return own_server


def test_requests_wait_for_a_server_that_is_away(server: PostgresServer) -> None:
    with Driver(lambda: PostgresStore(server.url, wait_s=25)) as store:
        store.append(REF, "a")
        store.texts(REF)
        server.stop()

        async def ask_meanwhile() -> tuple[int, list[bytes]]:
            write = asyncio.ensure_future(
                store.store.write(Append(REF, [user("b")], message_format="openai"))
            )
            read = asyncio.ensure_future(store.store.messages(REF, 1, 1))
            await asyncio.wait([write, read], timeout=0.2)
            assert not write.done()
            assert not read.done()
            await asyncio.to_thread(server.start)
            return (await write).items[0].position, [message.body for message in await read]

        assert store.run(ask_meanwhile()) == (2, [b"a"])
        assert store.texts(REF) == ["a", "b"]


def test_requests_end_after_their_limit_and_the_store_goes_on_when_the_server_is_back(
    server: PostgresServer,
) -> None:
    with Driver(lambda: PostgresStore(server.url, wait_s=0.3)) as store:
        store.append(REF, "a")
        server.stop()
        try:
            with pytest.raises(StoreUnavailable) as write:
                store.append(REF, "b")
            with pytest.raises(StoreUnavailable) as read:
                store.texts(REF)
            with pytest.raises(StoreUnavailable) as search:
                store.run(store.store.search(REF, SearchQuery(text="a")))
        finally:
            server.start()
        assert write.value.retryable
        assert read.value.retryable
        assert search.value.retryable

        async def until_back() -> None:
            while True:
                try:
                    await store.store.write(Append(REF, [user("c")], message_format="openai"))
                    return
                except StoreUnavailable:
                    continue

        store.run(until_back())
        assert store.texts(REF) == ["a", "c"]
        assert store.run(store.store.search(REF, SearchQuery(text="c"))).hits


def test_once_a_request_has_waited_in_vain_the_others_fail_at_once_until_the_server_is_back(
    server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    with Driver(lambda: PostgresStore(server.url, wait_s=1.0)) as store:
        store.append(REF, "a")
        store.texts(REF)
        server.stop()
        try:
            with pytest.raises(StoreUnavailable):
                store.append(REF, "b")
            began = time.monotonic()
            for _ in range(10):
                for ask in (lambda: store.append(REF, "b"), lambda: store.texts(REF)):
                    with pytest.raises(StoreUnavailable) as refused:
                        ask()
                    assert refused.value.retryable
            # Twenty that wait would take twenty seconds.
            assert time.monotonic() - began < 10
        finally:
            server.start()
        deadline = time.monotonic() + 60
        while True:
            try:
                store.append(REF, "c")
                break
            except StoreUnavailable:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        assert store.texts(REF) == ["a", "c"]
    assert len([record for record in caplog.records if "the store failed" in record.message]) < 6
    assert not any(record.exc_info for record in caplog.records)


def test_a_connection_that_the_server_ends_is_made_anew(server: PostgresServer) -> None:
    with Driver(lambda: PostgresStore(server.url)) as store:
        for number in range(5):
            store.append(REF, str(number))
            store.texts(REF)
            with psycopg.connect(server.url, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'context-sidecar'"
                )
        assert store.texts(REF) == [str(number) for number in range(5)]


def test_a_server_that_is_not_there_is_reported_without_its_address() -> None:
    with (
        pytest.raises(StoreUnavailable) as refused,
        Driver(lambda: PostgresStore("postgresql://me:secret@127.0.0.1:1/nowhere")),
    ):
        pass
    assert refused.value.retryable
    for private in ("secret", "127.0.0.1", "me:"):
        assert private not in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize("url", ["nonsense", "postgresql://[", "http://localhost/x"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(StoreUnavailable, match=r"store\.url"), Driver(lambda: PostgresStore(url)):
        pass


def test_a_database_that_is_not_there_is_named_as_the_reason(server: PostgresServer) -> None:
    url = server.url.replace("dbname=postgres", "dbname=nowhere")
    with pytest.raises(StoreUnavailable, match="no such database"), Driver(lambda: PostgresStore(url)):
        pass


def test_a_newer_schema_is_refused_and_left_alone(server: PostgresServer) -> None:
    with Driver(lambda: PostgresStore(server.url)) as store:
        store.append(REF, "a")
    with psycopg.connect(server.url, autocommit=True) as other:
        other.execute("UPDATE context_sidecar.schema_version SET version = 99")
        with pytest.raises(StoreUnavailable, match="version 99"), Driver(lambda: PostgresStore(server.url)):
            pass
        assert other.execute("SELECT count(*) FROM context_sidecar.messages").fetchone() == (1,)


def test_a_database_in_another_encoding_is_refused(server: PostgresServer) -> None:
    with psycopg.connect(server.url, autocommit=True) as other:
        other.execute("CREATE DATABASE narrow ENCODING 'SQL_ASCII' TEMPLATE template0")
        url = server.url.replace("dbname=postgres", "dbname=narrow")
        with pytest.raises(StoreUnavailable, match="UTF-8"), Driver(lambda: PostgresStore(url)):
            pass
        other.execute("DROP DATABASE narrow WITH (FORCE)")


def test_names_of_any_text_and_length_stay_apart() -> None:
    names = ["\ud800", "\ud801", "\x1a", "\x1ad800", "x" * 1024, "x" * 1023 + "y", "\U0010ffff" * 1024]
    url = shared_server().fresh()
    with Driver(lambda: PostgresStore(url)) as store:
        for name in names:
            ref = SessionRef("h" + name, name)
            message = user("body", message_id=name, inner_id=name, turn_id=name)
            store.append(ref, message, session_key=name, advancement_key=name, agent_id=name)
        for name in names:
            ref = SessionRef("h" + name, name)
            head = store.run(store.store.session_by_key("h" + name, name))
            assert head is not None
            assert (head.ref, head.agent_id) == (ref, name)
            assert store.ids(ref) == store.turns(ref) == [name]
            assert store.run(store.store.advancement_known(ref, name))
            assert store.run(store.store.message(ref, name)) is not None


def test_many_stores_opened_at_once_make_the_tables_once(server: PostgresServer) -> None:
    async def open_all() -> None:
        stores = [PostgresStore(server.url) for _ in range(6)]
        await asyncio.gather(*(store.open() for store in stores))
        await asyncio.gather(*(store.close() for store in stores))

    for _ in range(3):
        server.fresh()
        asyncio.run(asyncio.wait_for(open_all(), 30))
