"""A SQLite store on a disk that is full, locked or faulty."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from sidecar.store.errors import StoreUnavailable
from sidecar.store.sqlite import writer
from sidecar.store.sqlite.store import SQLiteStore
from sidecar.store.writes import Append, Write
from tests.store_kit import REF, Driver, user
from tests.watched_vfs import WatchedVFS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[Driver]:
    with Driver(lambda: SQLiteStore(path)) as driver:
        yield driver


@pytest.fixture
def watched(path: Path) -> Iterator[tuple[Driver, WatchedVFS]]:
    vfs = WatchedVFS(f"watched-{path.parent.name}")
    with Driver(lambda: SQLiteStore(path, vfs=vfs.name)) as driver:
        yield driver, vfs
    vfs.unregister()


def outcomes(store: Driver, writes: list[Append]) -> list[str]:
    """The outcomes of writes submitted together."""

    async def submit() -> list[str]:
        finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ends: list[str] = []

        def done(write: Write) -> None:
            ends.append(str(write.error) if write.error else "stored")
            if len(ends) == len(writes):
                finished.set_result(None)

        for write in writes:
            store.store.submit(write, done)
        await finished
        return ends

    return store.run(submit())


def append(text: str) -> Append:
    return Append(REF, [user(text)], message_format="openai")


def test_a_full_disk_fails_writes_and_nothing_else_and_passes(watched: tuple[Driver, WatchedVFS]) -> None:
    store, vfs = watched
    store.append(REF, "a")
    vfs.full = True
    assert outcomes(store, [append("b"), append("c")]) == ["the disk is full"] * 2
    with pytest.raises(StoreUnavailable) as caught:
        store.append(REF, "d", advancement_key="k")
    assert caught.value.retryable
    assert "Free space" in caught.value.hint
    assert store.texts(REF) == ["a"]
    vfs.full = False
    result = store.append(REF, "e", advancement_key="k")
    assert (result.duplicate, result.items[0].position) == (False, 2)
    store.reopen()
    assert store.texts(REF) == ["a", "e"]


def test_a_message_beyond_what_sqlite_can_keep_fails_alone(
    store: Driver, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    store.append(REF, "a")
    limit_of_writer(path, 10_000)
    ends = outcomes(store, [append("b"), append("x" * 20_000), append("c")])
    assert ends == ["stored", "a message is larger than the store can keep", "stored"]
    assert store.texts(REF) == ["a", "b", "c"]


def limit_of_writer(path: Path, size: int) -> None:
    """Lower the largest row of the connections that write to a store."""
    writing = [each for each in apsw.connections() if each.filename == str(path)]
    writing = [each for each in writing if not each.pragma("query_only")]
    assert writing
    for connection in writing:
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, size)


def test_a_locked_store_fails_writes_until_the_lock_is_gone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_BUSY_MS", 20)
    with Driver(lambda: SQLiteStore(path)) as store:
        store.append(REF, "a")
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked") as caught:
            store.append(REF, "b")
        assert caught.value.retryable
        assert store.texts(REF) == ["a"]
        other.execute("ROLLBACK")
        other.close()
        store.append(REF, "c")
        assert store.texts(REF) == ["a", "c"]


def test_a_store_that_is_locked_whole_does_not_open(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_BUSY_MS", 20)
    other = apsw.Connection(str(path))
    other.pragma("locking_mode", "exclusive")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreUnavailable, match="locked") as caught, Driver(lambda: SQLiteStore(path)):
        pass
    assert caught.value.retryable
    other.close()


def test_a_write_that_was_begun_outlasts_the_cancellation_of_its_task(store: Driver, path: Path) -> None:
    store.append(REF, "a")
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")

    async def cancel_once_begun() -> list[str]:
        write = append("b")
        task = asyncio.create_task(store.store.write(write))
        while not write.started:  # noqa: ASYNC110
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        waiting = not task.done()
        other.execute("ROLLBACK")
        result = await task
        return ["waiting" if waiting else "ended", result.items[0].message_id]

    assert store.run(cancel_once_begun()) == ["waiting", store.ids(REF)[1]]
    other.close()


def test_the_log_does_not_grow_without_end(store: Driver, path: Path) -> None:
    log = Path(f"{path}-wal")
    sizes: list[int] = []
    for _ in range(60):
        store.append(REF, *["x" * 100_000] * 5)
        sizes.append(log.stat().st_size)
    assert max(sizes) < 16 << 20
