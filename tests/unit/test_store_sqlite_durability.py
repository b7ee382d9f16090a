"""When a SQLite store reports something as stored."""

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.store.sqlite.store import SQLiteStore
from sidecar.store.writes import Append, Write
from tests.store_kit import REF, Driver, user
from tests.watched_vfs import SYNC, WRITE, WatchedVFS


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[Driver, WatchedVFS]]:
    vfs = WatchedVFS(f"watched-{tmp_path.name}")
    with Driver(lambda: SQLiteStore(tmp_path / "store.db", vfs=vfs.name)) as driver:
        yield driver, vfs
    gc.collect()
    vfs.unregister()


def test_every_acknowledgement_comes_after_the_sync_of_its_commit(watched: tuple[Driver, WatchedVFS]) -> None:
    store, vfs = watched

    async def load() -> None:
        finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        left = 400

        def done(write: Write) -> None:
            nonlocal left
            vfs.events.append("done")
            left -= 1
            if left == 0:
                finished.set_result(None)
            elif left >= 16:
                submit(left)

        def submit(index: int) -> None:
            store.store.submit(Append(REF, [user(f"m{index}")], message_format="openai"), done)

        for index in range(16):
            submit(index)
        await finished

    store.append(REF, "first")
    vfs.events.clear()
    store.run(load())
    unsynced = False
    for event in vfs.events:
        unsynced = event == WRITE or (unsynced and event != SYNC)
        assert event != "done" or not unsynced
    assert vfs.events.count("done") == 400
    assert 0 < vfs.events.count(SYNC) < 400


def test_writes_that_queue_up_share_a_commit(watched: tuple[Driver, WatchedVFS]) -> None:
    store, vfs = watched

    async def burst() -> None:
        for index in range(100):
            store.store.submit(Append(REF, [user(str(index))], message_format="openai"), lambda _: None)
        await store.store.write(Append(REF, [user("last")], message_format="openai"))

    store.append(REF, "first")
    vfs.events.clear()
    store.run(burst())
    assert vfs.events.count(SYNC) <= 10
