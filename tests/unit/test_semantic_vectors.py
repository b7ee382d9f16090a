"""Vectors as they are kept, and the search in them."""

from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.semantic.model import DIMENSIONS
from sidecar.semantic.vectors import CHUNK, Row, Shelf, Stretch, decoded, encoded, quantised, stretch_of

WHOLE = 1 << 60


def unit_vectors(count: int, seed: int) -> Any:
    drawn = numpy.random.default_rng(seed).normal(size=(count, DIMENSIONS)).astype(numpy.float32)
    return drawn / numpy.linalg.norm(drawn, axis=1, keepdims=True)


def stretch(vectors: Any, users: int = 1) -> Stretch:
    """One vector for each of some messages."""
    rows = [Row(offset, users, offset) for offset in range(len(vectors))]
    return stretch_of(len(vectors), rows, {row.key: row.offset for row in rows}, vectors, {})


def filled(vectors: Any) -> Shelf:
    shelf = Shelf(1, 0)
    for number in range(-(-len(vectors) // CHUNK)):
        shelf.put(number, stretch(vectors[number * CHUNK : (number + 1) * CHUNK]))
    return shelf


def positions(shelf: Shelf, asked: Any, **narrowed: Any) -> list[int]:
    given: dict[str, Any] = {"limit": 10, "floor": -1.0, "first": 1, "last": WHOLE, "users": frozenset()}
    return [near.position for near in shelf.nearest(asked, **(given | narrowed))]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 30))
def test_a_byte_for_each_number_keeps_similarities_to_a_hundredth(seed: int) -> None:
    vectors = unit_vectors(8, seed)
    rows, scales = quantised(vectors)
    assert numpy.abs((rows * scales[:, None]) @ vectors.T - vectors @ vectors.T).max() < 0.01


def test_what_is_kept_comes_back() -> None:
    kept = stretch(unit_vectors(5, 1))
    found = decoded(encoded(kept, 7, 3))
    assert found is not None
    assert found[1:] == (7, 3)
    assert found[0].messages == 5
    assert all((mine == theirs).all() for mine, theirs in zip(kept[1:], found[0][1:], strict=True))


@pytest.mark.parametrize("value", [None, b"", b"\x91\x01", b"\xff" * 40])
def test_what_is_no_stretch_is_not_taken_for_one(value: bytes | None) -> None:
    assert decoded(value) is None


def test_a_stretch_that_was_cut_off_is_not_taken_for_one() -> None:
    assert decoded(encoded(stretch(unit_vectors(5, 1)), 7, 3)[:-1]) is None


def test_the_most_similar_message_comes_first_however_many_stretches_there_are() -> None:
    vectors = unit_vectors(40 * CHUNK + 5, 2)
    shelf = filled(vectors)
    for row in (0, 63, 64, 20 * CHUNK + 1, len(vectors) - 1):
        assert positions(shelf, vectors[row])[0] == row + 1


def test_a_stretch_that_grows_replaces_what_it_was() -> None:
    vectors = unit_vectors(30 * CHUNK, 3)
    shelf = filled(vectors[:-1])
    assert positions(shelf, vectors[5])[0] == 6
    shelf.put(29, stretch(vectors[29 * CHUNK :]))
    assert positions(shelf, vectors[-1])[0] == len(vectors)
    assert shelf.covered == len(vectors)


def test_positions_and_speakers_narrow_the_search() -> None:
    vectors = unit_vectors(10, 4)
    shelf = Shelf(1, 0)
    shelf.put(0, stretch(vectors, users=2))
    assert sorted(positions(shelf, vectors[4], first=6)) == [6, 7, 8, 9, 10]
    assert 5 not in positions(shelf, vectors[4], last=4)
    assert positions(shelf, vectors[4], users=frozenset({1})) == []
    assert positions(shelf, vectors[4], users=frozenset({2}))[0] == 5


def test_nothing_below_the_floor_is_found() -> None:
    vectors = unit_vectors(10, 5)
    assert positions(filled(vectors), vectors[2], floor=0.9) == [3]


def test_messages_that_became_too_old_are_let_go() -> None:
    vectors = unit_vectors(3 * CHUNK, 6)
    shelf = filled(vectors)
    assert shelf.let_go(2) == [0, 1]
    assert positions(shelf, vectors[0], floor=0.9) == []
    assert positions(shelf, vectors[-1])[0] == len(vectors)
    assert shelf.size == CHUNK


def test_vectors_that_are_known_are_not_needed_again() -> None:
    vectors = unit_vectors(3, 7)
    before = stretch(vectors)
    known = before.known()
    rows = [Row(0, 1, 2), Row(1, 1, 0)]
    moved = stretch_of(2, rows, {}, numpy.zeros((0, DIMENSIONS), numpy.float32), known)
    shelf = Shelf(1, 0)
    shelf.put(0, moved)
    assert positions(shelf, vectors[2], floor=0.9) == [1]
    assert shelf.says(2, 0)
    assert not shelf.says(1, 0)
