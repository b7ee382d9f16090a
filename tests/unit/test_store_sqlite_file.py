"""Opening the file of a SQLite store, in whatever state it is."""

import asyncio
import shutil
import stat
from pathlib import Path

import apsw
import pytest

from sidecar.store import open_store
from sidecar.store.contract import SessionStore
from sidecar.store.errors import StoreUnavailable
from sidecar.store.search import SearchQuery
from sidecar.store.sqlite.schema import MIGRATIONS, VERSION
from tests.store_kit import REF, Driver


def refusal(path: Path) -> StoreUnavailable:
    """Why the store at this path does not open."""
    with pytest.raises(StoreUnavailable) as caught, Driver(lambda: open_store("sqlite", path)):
        pass
    assert str(path.parent) not in str(caught.value) + caught.value.hint
    return caught.value


def sqlite_store(path: Path) -> Driver:
    def make() -> SessionStore:
        return open_store("sqlite", path)

    return Driver(make)


def test_stored_messages_are_there_after_reopening(tmp_path: Path) -> None:
    with sqlite_store(tmp_path / "store.db") as store:
        store.append(REF, "a", "b")
        before = store.messages(REF)
        store.reopen()
        assert store.messages(REF) == before
        assert store.append(REF, "c").items[0].position == 3


def test_folder_and_files_are_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "deep" / "store.db"
    with sqlite_store(path) as store:
        store.append(REF, "a")
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.touch()
    with sqlite_store(path) as store:
        store.append(REF, "a")
        assert store.texts(REF) == ["a"]


def test_every_commit_is_synced_and_erased_data_is_overwritten(tmp_path: Path) -> None:
    from sidecar.store.sqlite.connection import connect

    connection = connect(tmp_path / "store.db", None, busy_ms=1, cache_kib=1024)
    assert [connection.pragma(name) for name in ("synchronous", "secure_delete")] == [2, 1]
    connection.close()


def test_a_store_that_a_newer_process_upgrades_while_it_is_open_is_left_alone_from_then_on(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    with sqlite_store(path) as store:
        store.append(REF, "a word")
        other = apsw.Connection(str(path))
        other.execute(f"PRAGMA user_version = {VERSION + 1}")
        for request in (
            lambda: store.append(REF, "of the old form"),
            lambda: store.texts(REF),
            lambda: store.run(store.store.search(REF, SearchQuery(text="word"))),
        ):
            with pytest.raises(StoreUnavailable, match=f"schema version {VERSION + 1}") as refused:
                request()
            assert "Restart with the newer version" in refused.value.hint
        other.execute(f"PRAGMA user_version = {VERSION}")
        other.close()
        assert store.texts(REF) == ["a word"]


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with sqlite_store(path) as store:
        store.append(REF, "a")
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    error = refusal(path)
    assert f"schema version {VERSION + 1}" in str(error)
    assert "Update" in error.hint
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")
    connection.close()
    before = path.read_bytes()
    assert "another program" in str(refusal(path))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough to be read" * 100, b"x", b"x" * 511, b"x" * 512]
)
def test_a_file_that_is_not_a_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(content)
    error = refusal(path)
    assert "damaged" in str(error)
    assert "backup" in error.hint
    assert path.read_bytes() == content


def test_a_file_that_was_cut_off_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with sqlite_store(path) as store:
        store.append(REF, *["x" * 5000] * 20)
    content = path.read_bytes()[:16384]
    path.write_bytes(content)
    assert "damaged" in str(refusal(path))
    assert path.read_bytes() == content


def test_damage_that_shows_later_is_reported_by_the_read_or_write_that_meets_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with sqlite_store(path) as store:
        store.append(REF, *["x" * 5000] * 50)
    page = 8192
    content = path.read_bytes()
    tables = (
        apsw.Connection(str(path)).execute("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'").get
    )
    start = (tables - 1) * page
    path.write_bytes(content[:start] + b"\xff" * page + content[start + page :])
    with sqlite_store(path) as store:
        with pytest.raises(StoreUnavailable, match="damaged"):
            store.messages(REF)
        with pytest.raises(StoreUnavailable, match="damaged"):
            store.append(REF, "b")
        assert store.run(store.store.session(REF)) is not None


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.mkdir()
    assert "state directory" in refusal(path).hint


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    error = refusal(tmp_path / "state" / "store.db")
    assert "state directory" in error.hint
    assert (tmp_path / "state").read_text() == "a file"


def test_a_log_left_behind_by_a_killed_process_is_read(tmp_path: Path) -> None:
    path, copied = tmp_path / "store.db", tmp_path / "copy" / "store.db"
    copied.parent.mkdir()
    with sqlite_store(path) as store:
        store.append(REF, "a", "b")
        for file in (path, Path(f"{path}-wal")):
            shutil.copy(file, copied.parent)
    with sqlite_store(copied) as store:
        assert store.texts(REF) == ["a", "b"]


def test_a_store_of_every_earlier_version_is_brought_to_this_one(tmp_path: Path) -> None:
    for version in range(1, VERSION):
        path = tmp_path / f"{version}.db"
        connection = apsw.Connection(str(path))
        for statements in MIGRATIONS[:version]:
            connection.execute(statements)
        connection.execute(f"PRAGMA user_version = {version}; PRAGMA application_id = {0x43455053}")
        connection.close()
        with sqlite_store(path) as store:
            store.append(REF, "a")
            assert store.texts(REF) == ["a"]
    assert len(MIGRATIONS) == VERSION


def test_a_store_without_a_file_or_of_an_unknown_kind_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="path"):
        open_store("sqlite")
    with pytest.raises(ValueError, match="kind"):
        open_store("paper", tmp_path)  # pyright: ignore[reportArgumentType]


def test_a_new_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    async def open_all(path: Path) -> None:
        stores = [open_store("sqlite", path) for _ in range(12)]
        try:
            await asyncio.gather(*(store.open() for store in stores))
        finally:
            await asyncio.gather(*(store.close() for store in stores))

    for number in range(8):
        asyncio.run(open_all(tmp_path / f"{number}.db"))
