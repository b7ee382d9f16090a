"""Of the processes that share a PostgreSQL store, one indexes a session at a time."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sidecar.store.indexing import jobs
from sidecar.store.postgres import writer as postgres_writer
from sidecar.store.postgres.store import PostgresStore
from sidecar.store.stored import SessionRef
from tests.postgres_server import shared_server
from tests.search_kit import index_in_small_portions, positions, rest
from tests.store_kit import LIMIT_S, REF, Driver

CLAIMER = Path(__file__).with_name("index_claimer.py")
OTHER = SessionRef("host", "other")
MESSAGES = 20
_SEGMENTS = "SELECT first, size FROM search_segments WHERE session = %s AND live ORDER BY first"


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty store, in which segments are made of four messages, soon."""
    index_in_small_portions(monkeypatch)
    return shared_server().fresh()


@pytest.fixture
def filled(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with two sessions that nobody has indexed."""
    with monkeypatch.context() as patch, Driver(lambda: PostgresStore(url)) as store:
        patch.setattr(postgres_writer, "_INDEX_FROM_S", 3600)
        for ref in (REF, OTHER):
            store.append(ref, *[f"plum number{index}x" for index in range(MESSAGES)])
    return url


def query(url: str, statement: str, *bindings: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = context_sidecar")
        return connection.execute(statement, bindings).fetchall()


def uid_of(url: str, ref: SessionRef) -> int:
    return query(url, "SELECT uid FROM sessions WHERE session_id = %s", ref.session_id)[0][0]


def covered(url: str, ref: SessionRef) -> list[int]:
    """The positions in segments, as often as they are in one."""
    found = query(url, _SEGMENTS, uid_of(url, ref))
    return [position for first, size in found for position in range(first, first + size)]


def wait_for(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.01)


@contextmanager
def claimed(url: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds sessions; it is killed at the end if it was not before."""
    command = [sys.executable, str(CLAIMER), url, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            process.kill()


def test_a_session_that_another_process_indexes_is_left_alone_until_that_is_killed(filled: str) -> None:
    with (
        claimed(filled, str(uid_of(filled, REF))) as holder,
        Driver(lambda: PostgresStore(filled)) as store,
    ):
        wait_for(lambda: len(covered(filled, OTHER)) == MESSAGES, "the other session is not indexed")
        assert covered(filled, REF) == []
        assert len(positions(store, "plum", limit=100)) == MESSAGES
        holder.kill()
        wait_for(lambda: len(covered(filled, REF)) == MESSAGES, "the claim of a killed process stays")
        assert len(positions(store, "plum", limit=100)) == MESSAGES


def test_a_merge_that_a_killed_process_has_left_is_cleared_away_and_done_again(filled: str) -> None:
    uid = uid_of(filled, REF)
    with claimed(filled, "half", str(uid)):
        assert query(filled, "SELECT 1 FROM search_segments WHERE NOT live")
    with Driver(lambda: PostgresStore(filled)) as store:
        wait_for(lambda: covered(filled, REF) == list(range(1, MESSAGES + 1)), "it is not indexed")
        rest(store)
        assert query(filled, "SELECT 1 FROM search_segments WHERE NOT live") == []
        stray = "SELECT 1 FROM search_blocks WHERE block >> 16 NOT IN (SELECT segment FROM search_segments)"
        assert query(filled, stray) == []
        assert len(positions(store, "plum", limit=100)) == MESSAGES


def test_two_stores_that_write_to_one_session_index_every_message_once(url: str) -> None:
    with Driver(lambda: PostgresStore(url)) as one, Driver(lambda: PostgresStore(url)) as two:
        for number in range(30):
            for store in (one, two):
                store.append(REF, *[f"plum number{number}x{index}" for index in range(4)])
        wait_for(lambda: len(covered(url, REF)) >= 240, "it is not indexed")
        for store in (one, two):
            rest(store)
            assert sorted(covered(url, REF)) == list(range(1, 241))
            assert len(positions(store, "plum", limit=1000)) == 240


def test_the_last_few_messages_of_a_session_at_rest_are_indexed(
    filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "CHUNK", MESSAGES + 1)
    monkeypatch.setattr(jobs, "RESTED_MS", -60_000)
    with Driver(lambda: PostgresStore(filled)) as store:
        for ref in (REF, OTHER):
            wait_for(lambda ref=ref: len(covered(filled, ref)) == MESSAGES, "it is not indexed")
        assert len(positions(store, "plum", limit=100)) == MESSAGES
