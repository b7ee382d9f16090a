"""Stored vectors, and searching them."""

from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.semantic.model import DIMENSIONS
from sidecar.semantic.vectors import CHUNK, Chunk, Row, VectorTable, chunk_of, decoded, encoded, quantised

WHOLE = 1 << 60


def unit_vectors(count: int, seed: int) -> Any:
    drawn = numpy.random.default_rng(seed).normal(size=(count, DIMENSIONS)).astype(numpy.float32)
    return drawn / numpy.linalg.norm(drawn, axis=1, keepdims=True)


def chunk(vectors: Any, users: int = 1) -> Chunk:
    """One vector for each of some messages."""
    rows = [Row(offset, users, offset) for offset in range(len(vectors))]
    return chunk_of(len(vectors), rows, {row.key: row.offset for row in rows}, vectors, {})


def filled(vectors: Any) -> VectorTable:
    table = VectorTable(1, 0)
    for number in range(-(-len(vectors) // CHUNK)):
        table.put(number, chunk(vectors[number * CHUNK : (number + 1) * CHUNK]))
    return table


def positions(table: VectorTable, asked: Any, **narrowed: Any) -> list[int]:
    given: dict[str, Any] = {"limit": 10, "floor": -1.0, "first": 1, "last": WHOLE, "users": frozenset()}
    return [near.position for near in table.nearest(asked, **(given | narrowed))]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 30))
def test_a_byte_for_each_number_keeps_similarities_to_a_hundredth(seed: int) -> None:
    vectors = unit_vectors(8, seed)
    rows, scales = quantised(vectors)
    assert numpy.abs((rows * scales[:, None]) @ vectors.T - vectors @ vectors.T).max() < 0.01


def test_encoded_vectors_decode_unchanged() -> None:
    kept = chunk(unit_vectors(5, 1))
    found = decoded(encoded(kept, 7, 3))
    assert found is not None
    assert found[1:] == (7, 3)
    assert found[0].messages == 5
    assert all((mine == theirs).all() for mine, theirs in zip(kept[1:], found[0][1:], strict=True))


@pytest.mark.parametrize("value", [None, b"", b"\x91\x01", b"\xff" * 40])
def test_data_that_is_not_a_chunk_is_not_mistaken_for_one(value: bytes | None) -> None:
    assert decoded(value) is None


def test_a_truncated_chunk_is_not_mistaken_for_a_whole_one() -> None:
    assert decoded(encoded(chunk(unit_vectors(5, 1)), 7, 3)[:-1]) is None


def test_the_most_similar_message_comes_first_however_many_chunks_there_are() -> None:
    vectors = unit_vectors(40 * CHUNK + 5, 2)
    table = filled(vectors)
    for row in (0, 63, 64, 20 * CHUNK + 1, len(vectors) - 1):
        assert positions(table, vectors[row])[0] == row + 1


def test_a_chunk_that_grows_replaces_its_earlier_version() -> None:
    vectors = unit_vectors(30 * CHUNK, 3)
    table = filled(vectors[:-1])
    assert positions(table, vectors[5])[0] == 6
    table.put(29, chunk(vectors[29 * CHUNK :]))
    assert positions(table, vectors[-1])[0] == len(vectors)
    assert table.covered == len(vectors)


def test_positions_and_speakers_narrow_the_search() -> None:
    vectors = unit_vectors(10, 4)
    table = VectorTable(1, 0)
    table.put(0, chunk(vectors, users=2))
    assert sorted(positions(table, vectors[4], first=6)) == [6, 7, 8, 9, 10]
    assert 5 not in positions(table, vectors[4], last=4)
    assert positions(table, vectors[4], users=frozenset({1})) == []
    assert positions(table, vectors[4], users=frozenset({2}))[0] == 5


def test_nothing_below_the_floor_is_found() -> None:
    vectors = unit_vectors(10, 5)
    assert positions(filled(vectors), vectors[2], floor=0.9) == [3]


def test_messages_that_became_too_old_are_let_go() -> None:
    vectors = unit_vectors(3 * CHUNK, 6)
    table = filled(vectors)
    assert table.let_go(2) == [0, 1]
    assert positions(table, vectors[0], floor=0.9) == []
    assert positions(table, vectors[-1])[0] == len(vectors)
    assert table.size == CHUNK


def test_vectors_that_are_known_are_not_needed_again() -> None:
    vectors = unit_vectors(3, 7)
    before = chunk(vectors)
    known = before.known()
    rows = [Row(0, 1, 2), Row(1, 1, 0)]
    moved = chunk_of(2, rows, {}, numpy.zeros((0, DIMENSIONS), numpy.float32), known)
    table = VectorTable(1, 0)
    table.put(0, moved)
    assert positions(table, vectors[2], floor=0.9) == [1]
    assert table.says(2, 0)
    assert not table.says(1, 0)
