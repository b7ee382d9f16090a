"""What is indexed of sessions at rest is kept in bundles, of which nothing shows in what searches find."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.store import open_store
from sidecar.store.indexing import bundles, jobs
from sidecar.store.indexing.bundles import bundle
from sidecar.store.indexing.jobs import IndexJobs
from sidecar.store.search import SearchKind, SearchQuery, plain_text
from sidecar.store.sqlite.connection import connect
from sidecar.store.sqlite.index_tables import IndexTables
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Delete, Fork, Truncate
from tests.search_kit import bundle_soon, bundled, index_in_small_portions, indexed, positions, rest
from tests.store_kit import LIMIT_S, Driver, user

SESSIONS, MESSAGES = 6, 8
SECRET = "kumquatmarmalade"


def ref(number: int) -> SessionRef:
    return SessionRef("host", f"s{number}")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    index_in_small_portions(monkeypatch)
    bundle_soon(monkeypatch)
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[Driver]:
    """Sessions of which all is bundled; those with even numbers are Ann's."""
    with Driver(lambda: open_store("sqlite", path)) as driver:
        for number in range(SESSIONS):
            texts = [f"plum number{number}x{index}y" for index in range(1, MESSAGES + 1)]
            driver.append(ref(number), *texts, agent_id="bob" if number % 2 else "ann")
        wait_until_bundled(path, SESSIONS * MESSAGES)
        rest(driver)
        yield driver


def wait_until_bundled(path: Path, messages: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while bundled(path) < messages:
        assert time.monotonic() < deadline, f"{bundled(path)} of {messages} messages are bundled"
        time.sleep(0.005)


def anywhere(
    store: Driver, text: str, kind: SearchKind = "words", *, without: tuple[int, ...] = (), **members: object
) -> list[tuple[str, int]]:
    query = SearchQuery(text=text, kind=kind, limit=1000, **members)  # pyright: ignore
    left_out = [ref(number) for number in without]
    found = store.run(store.store.search_sessions("host", query, without=left_out))  # pyright: ignore
    assert found.complete
    return [(hit.ref.session_id, hit.position) for hit in found.hits]


def finds_all(store: Driver, numbers: dict[int, list[int]]) -> None:
    """The messages with these numbers, session by session, are found where they are, in one and in all."""
    for session, kept in numbers.items():
        for position, number in enumerate(kept, 1):
            word = f"number{session}x{number}y"
            assert positions(store, word, ref=ref(session)) == [position]
            assert positions(store, word[1:-1], "literal", ref=ref(session)) == [position]
            assert anywhere(store, word) == [(f"s{session}", position)]
            assert anywhere(store, word[1:-1], "literal") == [(f"s{session}", position)]
    every = [(f"s{session}", place) for session, kept in numbers.items() for place, _ in enumerate(kept, 1)]
    assert sorted(anywhere(store, "plum")) == sorted(anywhere(store, "plu[m]", "regex")) == sorted(every)


ALL = {number: list(range(1, MESSAGES + 1)) for number in range(SESSIONS)}


def test_messages_in_bundles_are_found_where_they_are(store: Driver) -> None:
    finds_all(store, ALL)


def test_the_bundles_are_what_finds_them(store: Driver, path: Path) -> None:
    connection = connect(path, None, busy_ms=5000, cache_kib=1000)
    connection.execute("DELETE FROM search_blocks")
    connection.close()
    assert anywhere(store, "number3x4y") == []


def test_an_agent_finds_nothing_of_another_in_a_bundle(store: Driver) -> None:
    assert len(anywhere(store, "plum", agent_id="ann")) == SESSIONS // 2 * MESSAGES
    assert anywhere(store, "number3x4y", agent_id="ann") == []
    assert anywhere(store, "number3x4y", "literal", agent_id="ann") == []
    assert anywhere(store, "number3x4y", agent_id="bob") == [("s3", 4)]


@pytest.mark.parametrize("kind", ["words", "literal"])
def test_sessions_that_are_left_out_stay_out_of_their_bundle(store: Driver, kind: SearchKind) -> None:
    assert anywhere(store, "number3x4y", kind, without=(3,)) == []
    assert len(anywhere(store, "plum", kind, without=(3, 4))) == (SESSIONS - 2) * MESSAGES


def test_times_and_turns_narrow_a_search_of_bundles(store: Driver) -> None:
    before = store.messages(ref(2))[0].timestamp_ms
    stamped = user("plum later", timestamp_ms=before + 10**9)
    store.append(ref(5), stamped)
    assert anywhere(store, "plum", since_ms=before + 10**9) == [("s5", MESSAGES + 1)]
    assert len(anywhere(store, "plum", until_ms=before + 10**8)) == SESSIONS * MESSAGES
    turn = store.messages(ref(2))[2].turn
    assert ("s2", 3) in anywhere(store, "plum", turn_id=f"t{turn}")


def test_erasing_a_session_erases_what_a_bundle_has_of_it(store: Driver, path: Path) -> None:
    secret = SessionRef("host", "secret")
    store.append(secret, *[f"{SECRET} plum {index}" for index in range(MESSAGES)], agent_id="ann")
    wait_until_bundled(path, (SESSIONS + 1) * MESSAGES)
    rest(store)
    store.write(Delete(secret))
    left = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert SECRET.encode() not in left
    finds_all(store, ALL)
    rest(store)
    assert indexed(path) == SESSIONS * MESSAGES
    finds_all(store, ALL)


def test_bundled_sessions_that_change_are_found_as_they_are(store: Driver) -> None:
    store.append(ref(1), user("plum number1x9y", after=3))
    store.write(Truncate(ref(2), store.ids(ref(2))[4]))
    store.append(ref(2), "plum number2x9y")
    store.write(Fork(ref(3), SessionRef("host", "child"), store.ids(ref(3))[1]))
    store.write(Delete(ref(3)))
    store.write(Delete(SessionRef("host", "child")))
    changed = {**ALL, 1: [1, 2, 3, 9, 4, 5, 6, 7, 8], 2: [1, 2, 3, 4, 5, 9]}
    del changed[3]
    finds_all(store, changed)
    rest(store)
    finds_all(store, changed)


def test_a_session_that_comes_to_rest_is_indexed_without_a_new_start(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "RESTED_MS", 30)
    monkeypatch.setattr(jobs, "CHUNK", 255)
    with Driver(lambda: open_store("sqlite", path)) as store:
        store.append(ref(1), "plum", "quince", "pear")
        rest(store)
        deadline = time.monotonic() + LIMIT_S
        while indexed(path) < 3:
            assert time.monotonic() < deadline, "nothing is indexed"
            time.sleep(0.005)
        assert positions(store, "quince", ref=ref(1)) == [2]


@pytest.mark.parametrize("steps", [1, 2, 4, 6])
@pytest.mark.parametrize("erased", [False, True])
def test_a_bundle_that_was_never_completed_leaves_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, steps: int, erased: bool
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(bundles, "ENOUGH", 1 << 30)
        patch.setattr(jobs, "WRITE_BYTES", 1)
        with Driver(lambda: open_store("sqlite", path)) as store:
            for number in range(SESSIONS):
                store.append(ref(number), f"plum number{number}x1y", f"plum number{number}x2y")
            rest(store)
        patch.setattr(bundles, "ENOUGH", 8)
        tables = IndexTables(connect(path, None, busy_ms=5000, cache_kib=1000))
        job = bundle(tables, IndexJobs(tables, plain_text).take_over)
        for _ in range(steps):
            next(job)
        tables.connection.close()
    numbers = {number: [1, 2] for number in range(SESSIONS)}
    with Driver(lambda: open_store("sqlite", path)) as store:
        if erased:
            store.write(Delete(ref(0)))
            del numbers[0]
        wait_until_bundled(path, 8)
        rest(store)
        finds_all(store, numbers)
        tables = IndexTables(connect(path, None, busy_ms=5000, cache_kib=1000))
        stray = "SELECT count(*) FROM search_blocks WHERE block >> 16 NOT IN (SELECT {} FROM search_segments)"
        assert tables.value(stray.format("segment")) == 0
        assert tables.value("SELECT count(*) FROM search_segments WHERE NOT live OR bundle < 0") == 0
        tables.connection.close()
