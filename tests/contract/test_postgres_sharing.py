"""Stores that write to one PostgreSQL at the same time."""

import asyncio

from sidecar.store.postgres.store import PostgresStore
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Append
from tests.postgres_server import shared_server
from tests.store_kit import user

SESSIONS = 60


def test_a_session_that_two_stores_make_at_once_is_one_session() -> None:
    url = shared_server().fresh()

    async def race() -> None:
        stores = [PostgresStore(url) for _ in range(3)]
        await asyncio.gather(*(store.open() for store in stores))
        for number in range(SESSIONS):
            ref = SessionRef("host", f"s{number}")
            writes = [Append(ref, [user("a")], message_format="openai") for _ in stores]
            await asyncio.gather(*(store.write(write) for store, write in zip(stores, writes, strict=True)))
            assert sorted(write.result.items[0].position for write in writes) == [1, 2, 3]
        heads, _ = await stores[0].sessions("host", 1000, None)
        assert [head.message_count for head in heads] == [3] * SESSIONS
        await asyncio.gather(*(store.close() for store in stores))

    asyncio.run(asyncio.wait_for(race(), 60))


def test_one_of_the_stores_is_elected_until_it_closes_or_is_silent() -> None:
    url = shared_server().fresh()

    async def elect() -> None:
        stores = [PostgresStore(url) for _ in range(3)]
        await asyncio.gather(*(store.open() for store in stores))
        elected = await asyncio.gather(*(store.elected("task", 60) for store in stores))
        assert sorted(elected) == [False, False, True]
        first = stores.pop(elected.index(True))
        assert await first.elected("task", 60)
        assert await stores[0].elected("another task", 60)
        await first.close()
        assert await stores[0].elected("task", 0.05)
        for _ in range(1000):
            if await stores[1].elected("task", 60):
                break
        assert not await stores[0].elected("task", 60)
        await asyncio.gather(*(store.close() for store in stores))

    asyncio.run(asyncio.wait_for(elect(), 60))
