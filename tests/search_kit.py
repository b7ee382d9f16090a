"""Searches from plain test functions, and stores that index in small portions."""

import asyncio
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from sidecar.store.postgres import writer as postgres_writer
from sidecar.store.records import SessionRecord
from sidecar.store.search import Searchable, SearchKind, SearchQuery, SearchResult
from sidecar.store.sqlite import memory, writer
from sidecar.store.stored import SessionRef
from tests.store_kit import LIMIT_S, REF, Driver

TOOL_MARK = "\u2063"
"""In test bodies, tool names stand behind this mark."""


def extract(_session: SessionRecord, body: bytes) -> Searchable:
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
    """Let stores index a few messages at once, soon."""
    patch.setattr(writer, "_PAUSE_S", 0.001)
    patch.setattr(writer, "_PORTION", 4)
    patch.setattr(writer, "_LARGE_PORTION", 8)
    patch.setattr(postgres_writer, "_INDEX_FROM_S", 0.001)
    patch.setattr(postgres_writer, "_PORTION", 4)
    patch.setattr(memory, "_PAUSE_S", 0.001)
    patch.setattr(memory, "_PORTION", 4)


def indexed(path: Path) -> int:
    """How many messages are indexed in a file."""
    connection = apsw.Connection(str(path))
    try:
        return connection.execute("SELECT count(*) FROM search_docsize").get
    finally:
        connection.close()


def wait_until_indexed(path: Path, messages: int) -> None:
    """Wait until at least so many messages are indexed."""
    deadline = time.monotonic() + LIMIT_S
    while indexed(path) < messages:
        assert time.monotonic() < deadline, f"{indexed(path)} of {messages} messages are indexed"
        time.sleep(0.005)


def rest(store: Driver) -> None:
    """Wait until a store has nothing to index, or has given up for the moment."""

    async def until_indexed() -> None:
        while getattr(store.store, "indexing", False):  # noqa: ASYNC110
            await asyncio.sleep(0.002)

    store.run(until_indexed())
