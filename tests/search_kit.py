"""Searches from plain test functions, and stores that index in small portions."""

import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from sidecar.store.indexing import bundles
from sidecar.store.indexing import jobs as index_jobs
from sidecar.store.postgres import indexer as postgres_indexer
from sidecar.store.postgres import writer as postgres_writer
from sidecar.store.search import Searchable, SearchKind, SearchQuery, SearchResult
from sidecar.store.sqlite import indexer as sqlite_indexer
from sidecar.store.sqlite import writer
from sidecar.store.stored import SessionRef
from tests.store_kit import LIMIT_S, REF, Driver

TOOL_MARK = "\u2063"
"""In test bodies, tool names stand behind this mark."""


def extract(_message_format: str, body: bytes) -> Searchable:
    """The text of a test body, and its tools."""
    text, *tools = body.decode("utf-8", "replace").split(TOOL_MARK)
    return Searchable(text, tuple(tools))


def search(store: Driver, text: str, kind: SearchKind = "words", **members: Any) -> SearchResult:
    """What a search of one session finds."""
    ref: SessionRef = members.pop("ref", REF)
    query = SearchQuery(text=text, kind=kind, **members)
    return store.run(store.store.search(ref, query))  # pyright: ignore


def positions(store: Driver, text: str, kind: SearchKind = "words", **members: Any) -> list[int]:
    """The positions that a search finds."""
    return [hit.position for hit in search(store, text, kind, **members).hits]


def index_in_small_portions(patch: pytest.MonkeyPatch) -> None:
    """Let stores make segments of a few messages, soon, and merge them often."""
    patch.setattr(index_jobs, "CHUNK", 4)
    patch.setattr(index_jobs, "LEVELS", ((10, 3), (30, 3)))
    patch.setattr(writer, "_PAUSE_S", 0.001)
    patch.setattr(postgres_writer, "_INDEX_FROM_S", 0.001)
    patch.setattr(postgres_indexer, "_PAUSE_S", 0.001)
    patch.setattr(postgres_indexer, "_RETRY_S", 0.01)


def bundle_soon(patch: pytest.MonkeyPatch) -> None:
    """Let stores bundle a few messages of sessions at once, as if all were at rest."""
    patch.setattr(index_jobs, "FEW", 2)
    patch.setattr(index_jobs, "RESTED_MS", -60_000)
    patch.setattr(bundles, "FULL", 24)
    patch.setattr(bundles, "ENOUGH", 8)
    patch.setattr(sqlite_indexer, "_LATER_S", 0.0)
    patch.setattr(postgres_indexer, "_LOOK_AROUND_S", 0.01)


def bundled(path: Path) -> int:
    """How many messages are in bundles in a file."""
    return _messages_of_segments(path, "bundle > 0")


def indexed(path: Path) -> int:
    """How many messages are indexed in a file."""
    return _messages_of_segments(path, "session > 0")


def _messages_of_segments(path: Path, condition: str) -> int:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(
            f"SELECT coalesce(sum(size), 0) FROM search_segments WHERE live AND {condition}"
        ).get
    finally:
        connection.close()


def wait_until_indexed(path: Path, messages: int) -> None:
    """Wait until at least so many messages are indexed, and nothing is left over from merges."""
    deadline = time.monotonic() + LIMIT_S
    while indexed(path) < messages:
        assert time.monotonic() < deadline, f"{indexed(path)} of {messages} messages are indexed"
        time.sleep(0.005)


def rest(store: Driver) -> None:
    """Wait until a store has nothing to index, or has given up for the moment."""
    deadline = time.monotonic() + LIMIT_S
    while getattr(store.store, "indexing", False):
        assert time.monotonic() < deadline, "indexing does not come to an end"
        time.sleep(0.002)
