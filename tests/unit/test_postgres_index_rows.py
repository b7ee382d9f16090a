"""Blocks of the search index share rows in PostgreSQL, and are found again by their numbers."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.store.indexing.segments import Blocks
from sidecar.store.postgres.connection import Row, Value
from sidecar.store.postgres.index_rows import REGION, block_id, blocks_in, rows_of
from sidecar.store.postgres.reading_ahead import ReadingAhead

SEGMENT = 7
PLACES = st.integers(0, 0x7FFF)
APART = st.integers(0xC000, 0xFFFF)
CONTENTS = st.one_of(st.binary(max_size=40), st.integers(0, 9000).map(lambda size: b"ab" * (size // 2)))
BLOCKS = st.dictionaries(PLACES | APART, CONTENTS, max_size=60).map(lambda found: sorted(found.items()))


class Table:
    """Rows as the server keeps them, and how it is asked for some in a row."""

    def __init__(self, blocks: Blocks) -> None:
        self.rows = list(rows_of(SEGMENT, blocks))
        self.asked = 0

    def query(self, _statement: str, bindings: tuple[Value, ...]) -> list[Row]:
        """The row with a block, and those behind it."""
        self.asked += 1
        key = bindings[1]
        assert isinstance(key, int)
        at = bisect_right([row for row, _ in self.rows], key)
        return [*self.rows[max(0, at - 1) :]][:8]


@given(BLOCKS)
def test_every_block_is_in_the_last_row_that_does_not_begin_behind_it(blocks: Blocks) -> None:
    rows = list(rows_of(SEGMENT, blocks))
    keys = [key for key, _ in rows]
    assert keys == sorted(set(keys))
    for number, content in blocks:
        key, row = rows[bisect_right(keys, block_id(SEGMENT, number)) - 1]
        assert ((SEGMENT, number), content) in blocks_in(key, row)


@given(BLOCKS)
def test_a_row_has_blocks_of_one_kind(blocks: Blocks) -> None:
    for row in rows_of(SEGMENT, blocks):
        assert len({number >> REGION for (_, number), _ in blocks_in(*row)}) == 1


def test_small_blocks_share_rows_and_large_ones_have_their_own() -> None:
    assert len(list(rows_of(SEGMENT, [(number, bytes(range(100))) for number in range(18)]))) == 1
    assert len(list(rows_of(SEGMENT, [(number, b"x" * 6000) for number in range(3)]))) == 3


def test_what_repeats_itself_is_kept_smaller() -> None:
    [(_, row)] = rows_of(SEGMENT, [(1, b"plum " * 1000)])
    assert len(row) < 100


def test_blocks_in_disorder_are_refused() -> None:
    with pytest.raises(ValueError, match="block 3 of segment 7 comes behind block 4"):
        list(rows_of(SEGMENT, [(4, b"a"), (3, b"b")]))


@given(BLOCKS, st.lists(PLACES | APART, max_size=30))
def test_reading_ahead_finds_what_is_there_and_nothing_else(blocks: Blocks, wanted: list[int]) -> None:
    kept = dict(blocks)
    reading = ReadingAhead(Table(blocks).query)
    for number in [*kept, *wanted]:
        assert reading.block(SEGMENT, number) == kept.get(number)


def test_blocks_that_are_read_in_order_are_asked_for_some_at_a_time() -> None:
    blocks = [(number, bytes(range(250)) * 8) for number in range(64)]
    table = Table(blocks)
    reading = ReadingAhead(table.query)
    for number, content in blocks:
        assert reading.block(SEGMENT, number) == content
    assert table.asked <= 1 + len(table.rows) // 8
