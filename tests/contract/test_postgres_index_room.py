"""The index in PostgreSQL takes the room of what it holds, not of what was merged and erased."""

import time
from typing import Any

import psycopg
import pytest

from sidecar.store.postgres import index_tables
from sidecar.store.postgres.store import PostgresStore
from tests.postgres_server import shared_server
from tests.search_kit import index_in_small_portions, positions, rest
from tests.store_kit import LIMIT_S, REF, Driver

_VACUUMS = "SELECT vacuum_count FROM pg_stat_all_tables WHERE relname = 'search_blocks'"
_PAGES = "SELECT pg_relation_size('search_blocks') / 8192"


def value(url: str, statement: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = context_sidecar")
        row = connection.execute(statement.encode()).fetchone()
        return None if row is None else row[0]


def test_room_of_erased_blocks_is_used_again_without_the_server_s_own_upkeep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index_in_small_portions(monkeypatch)
    monkeypatch.setattr(index_tables, "_MANY_DROPPED", 1)
    url = shared_server().fresh()
    with Driver(lambda: PostgresStore(url)) as store:
        for number in range(12):
            store.append(REF, *[f"plum number{number}x{index} " + "word " * 50 for index in range(4)])
            rest(store)
        deadline = time.monotonic() + LIMIT_S
        while not value(url, _VACUUMS):
            assert time.monotonic() < deadline, "the index is never vacuumed"
            time.sleep(0.01)
        assert value(url, _PAGES) <= 8
        assert len(positions(store, "plum", limit=100)) == 48
