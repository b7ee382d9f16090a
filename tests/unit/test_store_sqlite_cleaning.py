"""Pages of the database file without remains of moved rows."""

from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.store.sqlite.checkpoints import Checkpoints
from sidecar.store.sqlite.cleaning import without_remains
from sidecar.store.sqlite.connection import connect


def pages_of(path: Path, page_size: int) -> list[bytes]:
    """The pages of a database whose rows were stored and erased in every way."""
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA page_size = {page_size}")
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b, c); CREATE INDEX i ON t (b)")
    connection.execute(
        "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n LIMIT 900) "
        "INSERT INTO t SELECT v, hex(randomblob(v % 50)), randomblob(v * 7 % 9000) FROM n"
    )
    connection.execute("DELETE FROM t WHERE a % 3; UPDATE t SET b = b || 'x' WHERE a % 2")
    connection.close()
    content = path.read_bytes()
    return [content[start : start + page_size] for start in range(0, len(content), page_size)]


@pytest.mark.parametrize("page_size", [512, 4096, 8192, 65536])
def test_a_database_of_cleaned_pages_holds_the_same(tmp_path: Path, page_size: int) -> None:
    original, cleaned = tmp_path / "a.db", tmp_path / "b.db"
    pages = pages_of(original, page_size)
    after = [without_remains(page, 0 if number else 100) for number, page in enumerate(pages)]
    cleaned.write_bytes(b"".join(after))
    connections = [apsw.Connection(str(path)) for path in (original, cleaned)]
    assert connections[1].pragma("integrity_check") == "ok"
    rows = [each.execute("SELECT * FROM t ORDER BY a").fetchall() for each in connections]
    assert rows[0] == rows[1]
    assert after != pages
    for connection in connections:
        connection.close()


def test_what_another_connection_has_rewritten_is_cleaned_by_whoever_makes_the_checkpoint(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    done: SimpleQueue[Callable[[], None]] = SimpleQueue()
    pages = pages_of(path, 4096)
    path.write_bytes(b"".join(without_remains(page, 0 if n else 100) for n, page in enumerate(pages)))
    own = connect(path, None, busy_ms=1000, cache_kib=1024)
    own.pragma("journal_mode", "wal")
    own.execute("CREATE TABLE own (a)")
    checkpoints = Checkpoints(own, path, None, done.put)
    checkpoints.scrub()
    other = apsw.Connection(str(path))
    other.execute(
        "UPDATE t SET c = randomblob(3000); DELETE FROM t WHERE a % 2; UPDATE t SET b = b || 'xxxxx'"
    )
    own.execute("INSERT INTO own VALUES (1)")
    checkpoints.scrub_in_pause()
    checkpoints.rest()
    done.get(timeout=30)()
    assert_clean(path)
    checkpoints.close()
    for connection in (own, other):
        connection.close()


def assert_clean(path: Path) -> None:
    """No page of a file has anything in its unused middle."""
    content = path.read_bytes()
    pages = [content[start : start + 4096] for start in range(0, len(content), 4096)]
    dirty = [n for n, page in enumerate(pages) if without_remains(page, 0 if n else 100) != page]
    assert dirty == []


@given(st.binary(max_size=600), st.sampled_from([0, 100]))
def test_any_page_keeps_its_size_and_only_loses_bytes_to_zero(page: bytes, start: int) -> None:
    cleaned = without_remains(page, start)
    assert len(cleaned) == len(page)
    assert all(new in (old, 0) for old, new in zip(page, cleaned, strict=True))
    assert cleaned[: start + 8] == page[: start + 8]


@given(st.integers(0, 1), st.binary(min_size=500, max_size=500))
def test_pages_that_are_not_trees_stay_unchanged(first: int, rest: bytes) -> None:
    page = bytes([first]) + rest
    assert without_remains(page, 0) is page
