"""Merging two rankings."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.semantic.search import fused

KEYS = st.lists(st.integers(0, 40), unique=True, max_size=20)


def scored(keys: list[int]) -> list[tuple[int, float]]:
    return [(key, float(len(keys) - place)) for place, key in enumerate(keys)]


def test_hits_in_both_rankings_precede_hits_in_one() -> None:
    assert fused(scored([1, 2, 3]), [3, 4, 5], 5)[0] == (3, 3.0)


def test_hits_not_found_by_words_take_part() -> None:
    assert 9 in [key for key, _ in fused(scored([1, 2]), [9], 3)]


def test_places_score_what_they_scored_among_words() -> None:
    assert [score for _, score in fused(scored([1, 2, 3]), [3, 2, 1], 3)] == [3.0, 2.0, 1.0]


def test_without_hits_by_words_hits_by_meaning_keep_their_order() -> None:
    found = fused([], [7, 8, 9], 2)
    assert [key for key, _ in found] == [7, 8]
    assert found[0][1] > found[1][1]


def test_hits_that_could_not_be_judged_keep_their_place() -> None:
    assert [key for key, _ in fused(scored([1, 2, 3]), [2, 3], 3, unjudged={1})] == [1, 2, 3]
    assert [key for key, _ in fused(scored([1, 2, 3]), [2, 3], 3)] == [2, 3, 1]


@given(KEYS, KEYS, st.integers(1, 30))
def test_each_message_comes_once_and_scores_fall(words: list[int], meaning: list[int], limit: int) -> None:
    found = fused(scored(words), meaning, limit)
    assert len(found) == min(limit, len(set(words) | set(meaning)))
    assert len({key for key, _ in found}) == len(found)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


@given(KEYS, st.integers(1, 30))
def test_without_hits_by_meaning_the_ranking_by_words_stays_unchanged(words: list[int], limit: int) -> None:
    assert fused(scored(words), [], limit) == scored(words)[:limit]
