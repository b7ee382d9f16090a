"""The index of a SQLite store: what it covers, how it follows changes, and what it leaves."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from sidecar.store import open_store
from sidecar.store.search import SearchKind
from sidecar.store.sqlite import fts5, writer
from sidecar.store.sqlite.schema import MIGRATIONS
from sidecar.store.sqlite.store import SQLiteStore
from sidecar.store.sqlite.upkeep.copying import copy_store
from sidecar.store.sqlite.upkeep.inspection import check
from sidecar.store.sqlite.upkeep.tidying import reindex
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Delete, Fork, Truncate
from tests.search_kit import index_in_small_portions, indexed, positions, rest, search, wait_until_indexed
from tests.store_kit import REF, Driver, user

CHILD = SessionRef("host", "child")
SECRET = "kumquatmarmalade"
KINDS: list[SearchKind] = ["words", "literal", "regex"]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stores in this test index in small portions."""
    index_in_small_portions(monkeypatch)
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[Driver]:
    """A store with sixty numbered messages, all indexed."""
    with Driver(lambda: open_store("sqlite", path)) as driver:
        driver.append(REF, *[f"plum number{index}x" for index in range(1, 61)])
        wait_until_indexed(path, 60)
        rest(driver)
        yield driver


def query(path: Path, statement: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def finds_every_message(store: Driver, ref: SessionRef, numbers: list[int]) -> None:
    """Assert that every message is found at its current position, by word and by part of a word."""
    for position, number in enumerate(numbers, 1):
        assert positions(store, f"number{number}x", ref=ref) == [position]
        assert positions(store, f"umber{number}x", "literal", ref=ref) == [position]
        assert positions(store, f"number{number}x$", "regex", ref=ref) == [position]
    assert len(positions(store, "plum", ref=ref, limit=1000)) == len(numbers)


def test_the_index_is_what_finds_them(store: Driver, path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO search(search) VALUES ('delete-all')")
    connection.close()
    for kind in KINDS:
        assert positions(store, "number7x", kind) == []


def test_messages_inserted_in_the_middle_are_found_and_later_ones_at_their_new_place(
    store: Driver, path: Path
) -> None:
    for after, number in ((30, 100), (0, 101), (62, 102), (47, 103)):
        store.append(REF, user(f"plum number{number}x", after=after))
    numbers = [101, *range(1, 31), 100, *range(31, 46), 103, *range(46, 61), 102]
    assert [f"plum number{number}x" for number in numbers] == store.texts(REF)
    finds_every_message(store, REF, numbers)
    wait_until_indexed(path, 61)
    rest(store)
    finds_every_message(store, REF, numbers)


def test_truncated_messages_are_not_found_but_their_replacements_are(store: Driver, path: Path) -> None:
    store.write(Truncate(REF, store.ids(REF)[36]))
    finds_every_message(store, REF, list(range(1, 38)))
    store.append(REF, *[f"plum number{number}x" for number in range(200, 230)])
    rest(store)
    finds_every_message(store, REF, [*range(1, 38), *range(200, 230)])


def test_a_fork_finds_shared_messages_and_nothing_after_them(store: Driver) -> None:
    store.write(Fork(REF, CHILD, store.ids(REF)[30]))
    store.append(CHILD, *[f"plum number{number}x" for number in range(300, 320)])
    rest(store)
    finds_every_message(store, CHILD, [*range(1, 32), *range(300, 320)])
    assert positions(store, "number40x", ref=CHILD) == []
    finds_every_message(store, REF, list(range(1, 61)))


@pytest.mark.parametrize("gone", [Truncate(REF, None), Delete(REF)])
def test_a_fork_finds_shared_messages_after_its_parent_lost_them(
    store: Driver, path: Path, gone: Truncate | Delete
) -> None:
    store.write(Fork(REF, CHILD, store.ids(REF)[30]))
    store.write(gone)
    finds_every_message(store, CHILD, list(range(1, 32)))
    wait_until_indexed(path, 28)
    rest(store)
    finds_every_message(store, CHILD, list(range(1, 32)))
    assert positions(store, "plum") == []


def bytes_on_disk(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


def test_deletion_leaves_no_term_of_a_session_in_any_file(path: Path) -> None:
    with Driver(lambda: open_store("sqlite", path)) as store:
        for index in range(40):
            store.append(REF, f"secret{SECRET}{index}q {index}", f"vault/{SECRET}/{index}.py 密语{index}")
            store.append(CHILD, f"innocent {index}", f"other {index}")
        wait_until_indexed(path, 160)
        rest(store)
        assert SECRET.encode() in bytes_on_disk(path)
        store.write(Delete(REF))
        left = bytes_on_disk(path)
        assert b"kumquatma" not in left
        assert "密语".encode() not in left
        assert len(positions(store, "innocent", ref=CHILD, limit=1000)) == 40
    assert b"kumquatma" not in bytes_on_disk(path)


def test_a_clean_stop_purges_erased_text_from_a_large_index(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fts5, "_AT_ONCE_S", 0.0)
    monkeypatch.setattr(fts5, "_SHARE", 1e9)
    secrets = [f"{index * 7919 + 104729:x}zq{index}" for index in range(200)]
    with Driver(lambda: open_store("sqlite", path)) as store:
        for secret in secrets:
            store.append(REF, f"the word {secret} stands here")
            store.append(CHILD, "nothing of interest stands here")
        wait_until_indexed(path, 400)
        rest(store)
        store.write(Delete(REF))
        assert store.run(store.store.search_state()).erased_since_ms is not None
        assert all(positions(store, secret, ref=CHILD) == [] for secret in secrets[:20])
    left = bytes_on_disk(path)
    assert [secret for secret in secrets if secret.encode() in left or secret[2:].encode() in left] == []
    with Driver(lambda: open_store("sqlite", path)) as store:
        assert len(positions(store, "interest", ref=CHILD, limit=1000)) == 200
        assert store.run(store.store.search_state()).erased_since_ms is None


def test_a_copy_has_no_word_of_what_was_erased_before(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fts5, "_AT_ONCE_S", 0.0)
    monkeypatch.setattr(fts5, "_SHARE", 1e9)
    copy = path.with_name("copy.db")
    with Driver(lambda: open_store("sqlite", path)) as store:
        store.append(REF, *[f"{SECRET}{index} stands here" for index in range(3)])
        store.append(CHILD, *[f"plum {index} stands here" for index in range(120)])
        wait_until_indexed(path, 123)
        store.write(Delete(REF))
        assert b"kumquatma" in bytes_on_disk(path)
        copy_store(path, copy, lambda *_: None)
    assert b"kumquatma" not in copy.read_bytes()
    assert_sound(copy)


def test_erased_text_leaves_a_large_index_during_a_pause_once_due(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fts5, "_AT_ONCE_S", 0.0)
    monkeypatch.setattr(fts5, "_PAGES", 1)
    with Driver(lambda: open_store("sqlite", path)) as store:
        store.append(REF, *[f"{SECRET}{index} stands here" for index in range(60)])
        store.append(CHILD, *[f"plum {index} stands here" for index in range(60)])
        wait_until_indexed(path, 120)
        store.write(Delete(REF))
        deadline = time.monotonic() + 30
        while store.run(store.store.search_state()).erased_since_ms is not None:
            assert time.monotonic() < deadline, "what was erased is never purged"
            time.sleep(0.01)
        while b"kumquatma" in bytes_on_disk(path):
            assert time.monotonic() < deadline, "what was purged stays in the file or its log"
            time.sleep(0.01)
        assert len(positions(store, "plum", ref=CHILD, limit=1000)) == 60


def test_truncation_and_insertion_leave_no_term_behind_once_the_session_is_deleted(path: Path) -> None:
    with Driver(lambda: open_store("sqlite", path)) as store:
        for round_ in range(4):
            store.append(REF, *[f"{SECRET}{round_}a{index}" for index in range(25)])
            rest(store)
            store.append(REF, user(f"{SECRET} inserted", after=7))
            store.write(Truncate(REF, store.ids(REF)[11 + round_]))
        rest(store)
        store.write(Delete(REF))
        assert b"kumquatma" not in bytes_on_disk(path)


def test_a_store_from_before_the_index_is_indexed_and_found_in_meanwhile(store: Driver, path: Path) -> None:
    store.run(store.store.close())
    old = path.with_name("old.db")
    connection = apsw.Connection(str(old))
    connection.execute(MIGRATIONS[0] + "PRAGMA user_version = 1; PRAGMA application_id = 0x43455053")
    connection.execute("ATTACH ? AS newer", (str(path),))
    for table in ("sessions", "messages"):
        columns = ", ".join(name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})"))
        connection.execute(f"INSERT INTO main.{table} SELECT {columns} FROM newer.{table}")
    connection.close()
    with Driver(lambda: open_store("sqlite", old)) as migrated:
        assert positions(migrated, "number17x") == [17]
        wait_until_indexed(old, 60)
        finds_every_message(migrated, REF, list(range(1, 61)))


def test_an_index_in_another_form_is_ignored_and_rebuilt(
    store: Driver, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.run(store.store.close())
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO search(search) VALUES ('delete-all')")
    connection.execute("UPDATE marks SET value = 0 WHERE name = 'search_format'")
    connection.close()
    assert fts5.FORMAT > 0
    store.reopen()
    assert positions(store, "number17x") == [17]
    rest(store)
    assert indexed(path) == 60
    finds_every_message(store, REF, list(range(1, 61)))


def test_without_an_index_of_parts_everything_is_found_and_the_file_is_smaller(
    store: Driver, path: Path
) -> None:
    size = "SELECT sum(length(block)) FROM search_data"
    ((with_parts,),) = query(path, size)
    store.run(store.store.close())
    with Driver(lambda: open_store("sqlite", path, parts=False)) as other:
        wait_until_indexed(path, 60)
        rest(other)
        finds_every_message(other, REF, list(range(1, 61)))
        ((without,),) = query(path, size)
        assert isinstance(with_parts, int)
        assert isinstance(without, int)
        assert without < 0.8 * with_parts
    with Driver(lambda: open_store("sqlite", path)) as other:
        finds_every_message(other, REF, list(range(1, 61)))
        rest(other)
        assert query(path, size) > [(without,)]


def test_two_processes_index_and_search_one_file(path: Path) -> None:
    with Driver(lambda: open_store("sqlite", path)) as one, Driver(lambda: open_store("sqlite", path)) as two:
        for number in range(1, 61):
            (one if number % 3 else two).append(REF, f"plum number{number}x")
            assert positions(two if number % 3 else one, f"number{number}x") == [number]
        wait_until_indexed(path, 60)
        for store in (one, two):
            rest(store)
            finds_every_message(store, REF, list(range(1, 61)))
    assert_sound(path)


def assert_sound(path: Path) -> None:
    """The index has just the messages that it should have."""
    found = {finding.name: finding for finding in check(path, lambda *_: None)}
    assert found["search index"].ok, found["search index"].message


def test_indexing_by_a_killed_process_is_completed_by_the_next(path: Path) -> None:
    script = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from sidecar.store import open_store\n"
        "from sidecar.store.stored import NewMessage, SessionRef\n"
        "from sidecar.store.writes import Append\n"
        "from sidecar.store.search import query\n"
        "from sidecar.store.sqlite import writer\n"
        "writer._PORTION, writer._LARGE_PORTION, writer._PAUSE_S = 4, 4, 0.001\n"
        "left = int(sys.argv[2])\n"
        "facets = query.facets\n"
        "def counted(row, searchable):\n"
        "    global left\n"
        "    left -= 1\n"
        "    if left < 0: os.kill(os.getpid(), 9)\n"
        "    return facets(row, searchable)\n"
        "query.facets = counted\n"
        "async def main():\n"
        "    store = open_store('sqlite', Path(sys.argv[1]))\n"
        "    await store.open()\n"
        "    bodies = [b'plum number%dx' % number for number in range(1, 61)]\n"
        "    made = [NewMessage(body=each, role='user', opens_turn=True) for each in bodies]\n"
        "    await store.write(Append(SessionRef('host', 'main'), made, message_format='openai'))\n"
        "    await asyncio.sleep(20)\n"
        "asyncio.run(main())\n"
    )
    for kill_at in (0, 3, 21, 58):
        file = path.with_name(f"{kill_at}.db")
        killed = subprocess.run(
            [sys.executable, "-c", script, str(file), str(kill_at)], timeout=60, check=False
        )
        assert killed.returncode == -9
        assert_sound(file)
        with Driver(lambda file=file: open_store("sqlite", file)) as store:
            finds_every_message(store, REF, list(range(1, 61)))
            wait_until_indexed(file, 60)
            rest(store)
            finds_every_message(store, REF, list(range(1, 61)))
        assert_sound(file)


def test_a_damaged_index_is_found_out_and_made_again_without_harm_to_the_messages(
    store: Driver, path: Path
) -> None:
    store.run(store.store.close())
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE search_data SET block = x'00ff00ff' WHERE id > 10")
    connection.close()
    found = {finding.name: finding for finding in check(path, lambda *_: None)}
    assert found["file"].ok
    assert not found["search index"].ok
    assert found["search index"].fix == "`context-sidecar db reindex`"
    reindex(path)
    assert_sound(path)
    store.reopen()
    finds_every_message(store, REF, list(range(1, 61)))
    wait_until_indexed(path, 60)
    finds_every_message(store, REF, list(range(1, 61)))


def test_searches_of_common_words_are_bounded_and_say_so(tmp_path: Path) -> None:
    with Driver(lambda: open_store("memory")) as store:
        store.append(REF, *[f"plum pear {index}" for index in range(11_000)])
        store.append(REF, *["quince and plum"] + ["plum pear"] * 20)
        rest(store)
        common = search(store, "plum pear")
        assert not common.complete
        assert [hit.position for hit in common.hits] == list(range(11_021, 11_011, -1))
        rare = search(store, "plum pear quince", limit=1)
        assert (rare.hits[0].position, rare.complete) == (11_001, True)


def test_indexing_waits_while_somebody_searches(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = [False]
    monkeypatch.setattr(writer, "_HELD_S", 1_000.0)

    def is_searching(_: SQLiteStore) -> bool:
        asked.append(True)
        return asked[0]

    monkeypatch.setattr(SQLiteStore, "_is_searching", is_searching)
    with Driver(lambda: open_store("sqlite", path)) as driver:
        asked[0] = True
        driver.append(REF, *[f"plum number{index}x" for index in range(1, 61)])
        deadline = time.monotonic() + 30
        while len(asked) < 5:
            assert time.monotonic() < deadline, "nobody asked"
            driver.messages(REF)
        assert indexed(path) == 0
        asked[0] = False
        wait_until_indexed(path, 60)


def test_indexing_goes_on_though_there_are_searches_all_the_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SQLiteStore, "_is_searching", lambda _: True)
    with Driver(lambda: open_store("sqlite", path)) as driver:
        driver.append(REF, *[f"plum number{index}x" for index in range(1, 61)])
        wait_until_indexed(path, 60)
