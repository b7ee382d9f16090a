"""Pages of the database file without remains of what was moved."""

from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.store.sqlite.cleaning import without_remains


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


@given(st.binary(max_size=600), st.sampled_from([0, 100]))
def test_any_page_keeps_its_size_and_only_loses_bytes_to_zero(page: bytes, start: int) -> None:
    cleaned = without_remains(page, start)
    assert len(cleaned) == len(page)
    assert all(new in (old, 0) for old, new in zip(page, cleaned, strict=True))
    assert cleaned[: start + 8] == page[: start + 8]


@given(st.integers(0, 1), st.binary(min_size=500, max_size=500))
def test_pages_that_are_no_trees_stay_as_they_are(first: int, rest: bytes) -> None:
    page = bytes([first]) + rest
    assert without_remains(page, 0) is page
