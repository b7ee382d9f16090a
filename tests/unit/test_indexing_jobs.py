"""Jobs of the indexer when what they work on changes between their steps."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.store import open_store
from sidecar.store.indexing import jobs as index_jobs
from sidecar.store.indexing.jobs import IndexJobs, Job
from sidecar.store.search import plain_text
from sidecar.store.sqlite import writer
from sidecar.store.sqlite.connection import connect
from sidecar.store.sqlite.index_tables import IndexTables
from sidecar.store.writes import Delete, Truncate
from tests.search_kit import positions
from tests.store_kit import REF, Driver, user


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """A store that does not index by itself."""
    monkeypatch.setattr(writer, "_PAUSE_S", 3600)
    monkeypatch.setattr(index_jobs, "CHUNK", 40)
    monkeypatch.setattr(index_jobs, "LEVELS", ((8192, 2),))
    monkeypatch.setattr(index_jobs, "WRITE_BYTES", 1)
    with Driver(lambda: open_store("sqlite", tmp_path / "s.db")) as driver:
        driver.append(REF, *[f"plum number{index}x" for index in range(1, 81)])
        yield driver


@pytest.fixture
def tables(store: Driver, tmp_path: Path) -> Iterator[IndexTables]:
    """Another process's view of the index."""
    connection = connect(tmp_path / "s.db", None, busy_ms=5000, cache_kib=1000)
    yield IndexTables(connection)
    connection.close()


@pytest.fixture
def jobs(tables: IndexTables) -> IndexJobs:
    return IndexJobs(tables, plain_text)


def advance(job: Job, steps: int) -> None:
    for _ in range(steps):
        next(job)


def finish(job: Job) -> None:
    for _ in job:
        pass


def counts(tables: IndexTables) -> tuple[int, int]:
    segments = tables.value("SELECT count(*) FROM search_segments WHERE live")
    return segments, tables.value("SELECT count(*) FROM search_blocks")


@pytest.mark.parametrize("steps", [1, 3, 4, 5])
def test_messages_that_changed_while_they_were_indexed_get_no_segment(
    store: Driver, tables: IndexTables, jobs: IndexJobs, steps: int
) -> None:
    job = jobs.build(1)
    advance(job, steps)
    store.append(REF, user("inserted", after=3))
    finish(job)
    assert counts(tables) == (0, 0)
    finish(jobs.build(1))
    assert positions(store, "number40x") == [41]


def test_messages_of_a_deleted_session_get_no_segment(
    store: Driver, tables: IndexTables, jobs: IndexJobs
) -> None:
    job = jobs.build(1)
    advance(job, 4)
    store.write(Delete(REF))
    finish(job)
    assert counts(tables) == (0, 0)


@pytest.mark.parametrize("steps", [0, 1, 3, 7])
def test_a_merge_of_messages_that_went_meanwhile_leaves_nothing(
    store: Driver, tables: IndexTables, jobs: IndexJobs, steps: int
) -> None:
    for _ in range(2):
        finish(jobs.build(1))
    assert counts(tables)[0] == 2
    job = jobs.merge(1)
    advance(job, steps)
    store.write(Truncate(REF, store.ids(REF)[49]))
    finish(job)
    finish_cleaning(jobs)
    assert tables.retired() == []
    assert positions(store, "number40x") == [40]
    store.write(Delete(REF))
    assert counts(tables) == (0, 0)


def test_a_merge_gives_way_to_messages_inserted_between_its_parts(
    store: Driver, tables: IndexTables, jobs: IndexJobs
) -> None:
    for _ in range(2):
        finish(jobs.build(1))
    job = jobs.merge(1)
    advance(job, 2)
    store.append(REF, user("inserted", after=40), user("first", after=0))
    finish(job)
    finish_cleaning(jobs)
    assert positions(store, "number40x") == [41]
    assert positions(store, "number41x") == [43]
    assert positions(store, "inserted") == [42]


def test_two_that_index_the_same_messages_make_one_segment(
    store: Driver, tables: IndexTables, jobs: IndexJobs
) -> None:
    first, second = jobs.build(1), jobs.build(1)
    advance(first, 4)
    advance(second, 4)
    finish(first)
    before = counts(tables)
    finish(second)
    assert counts(tables) == before
    assert before[0] == 1


def finish_cleaning(jobs: IndexJobs) -> None:
    for _ in jobs.clean():
        pass
