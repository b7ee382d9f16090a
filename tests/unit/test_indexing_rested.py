"""The last few messages of a session are indexed once nothing is added to it any more."""

from pathlib import Path

import pytest

from sidecar.store import open_store
from sidecar.store.indexing import jobs
from sidecar.store.search import SearchQuery
from sidecar.store.sqlite import writer
from sidecar.store.stored import SessionRef
from tests.search_kit import indexed, rest, wait_until_indexed
from tests.store_kit import Driver

SESSIONS, MESSAGES = 30, 20


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with sessions that have too few messages for a segment each."""
    monkeypatch.setattr(writer, "_PAUSE_S", 0.001)
    file = tmp_path / "store.db"
    with Driver(lambda: open_store("sqlite", file)) as store:
        for session in range(SESSIONS):
            texts = [f"plum number{session}x{index}" for index in range(MESSAGES)]
            store.append(SessionRef("host", f"s{session}"), *texts)
        rest(store)
    assert indexed(file) == 0
    return file


def test_sessions_at_rest_are_indexed_when_the_store_is_opened(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "RESTED_MS", -60_000)
    with Driver(lambda: open_store("sqlite", path)) as store:
        wait_until_indexed(path, SESSIONS * MESSAGES)
        search = store.store.search_sessions("host", SearchQuery(text="number17x3"))  # pyright: ignore
        found = store.run(search)
        assert [(hit.ref.session_id, hit.position) for hit in found.hits] == [("s17", 4)]
        store.append(SessionRef("host", "s17"), "plum number17x99")
        search = store.store.search_sessions("host", SearchQuery(text="number17x99"))  # pyright: ignore
        assert [hit.position for hit in store.run(search).hits] == [MESSAGES + 1]


def test_sessions_that_were_written_to_a_moment_ago_are_left_alone(path: Path) -> None:
    with Driver(lambda: open_store("sqlite", path)) as store:
        store.append(SessionRef("host", "s1"), "plum")
        rest(store)
    assert indexed(path) == 0


def test_the_very_last_messages_of_a_session_at_rest_are_not_worth_a_segment(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "RESTED_MS", -60_000)
    monkeypatch.setattr(jobs, "FEW", MESSAGES + 1)
    with Driver(lambda: open_store("sqlite", path)) as store:
        rest(store)
    assert indexed(path) == 0
