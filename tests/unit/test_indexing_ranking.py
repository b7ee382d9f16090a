"""Ranking does bounded work for words that many messages have, and never hides one that has them all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.store.indexing import ranking
from sidecar.store.indexing.facets import narrowing
from sidecar.store.indexing.gathering import Gathered
from sidecar.store.indexing.questions import question
from sidecar.store.indexing.ranking import Ranked, Ranking
from sidecar.store.indexing.shelf import View
from sidecar.store.records import MessageRow
from sidecar.store.search import Searchable, SearchQuery

COMMON, RARER = 400, 60


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_MOST_PLACES", 100)
    monkeypatch.setattr(ranking, "_MOST_COMPLETED", 10)
    monkeypatch.setattr(ranking, "_NEWEST", 30)


def ranked(texts: list[str], asked: str, count: int = 3) -> Ranked:
    views: list[View] = []
    for first in range(0, len(texts), 100):
        gathered = Gathered(first + 1)
        for number, text in enumerate(texts[first : first + 100], first + 1):
            row = MessageRow(number, 1, number, number, "u", number, 0, None, None, None, None, b"")
            gathered.add(row, Searchable(text, ()))
        views.append(View(gathered, 0, gathered.count))
    query = SearchQuery(text=asked)
    found = Ranking(views, question(asked), narrowing(query)).best(count)
    hits = [(number, views[number].shelf.first + ordinal, score) for number, ordinal, score in found.hits]
    return found._replace(hits=hits)


def test_the_one_message_with_both_words_comes_first_though_many_have_the_rarer_one() -> None:
    texts = [*["plum"] * COMMON, "quince " + "and long " * 40 + "plum", *["quince"] * RARER]
    found = ranked(texts, "plum quince")
    assert found.hits[0][1] == COMMON + 1
    assert not found.complete


def test_the_newest_with_the_rarer_word_follow_though_not_all_are_ranked() -> None:
    texts = [*["plum"] * COMMON, *["quince"] * RARER]
    found = ranked(texts, "plum quince")
    assert [position for _, position, _ in found.hits] == [COMMON + RARER - n for n in range(3)]


def test_a_search_of_few_messages_is_complete() -> None:
    found = ranked(["plum quince", "plum", "quince quince"], "plum quince")
    assert found.hits[0][1] == 1
    assert found.complete


TEXTS = st.lists(
    st.lists(st.sampled_from(["plum", "quince", "pear", "fig", "date"]), max_size=6).map(" ".join),
    min_size=1,
    max_size=40,
)


@given(TEXTS, st.integers(0, 60))
def test_the_best_few_of_common_words_are_the_first_of_all(texts: list[str], most_places: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "_MOST_PLACES", most_places)
        patch.setattr(ranking, "_MOST_COMPLETED", 1000)
        patch.setattr(ranking, "_NEWEST", 1000)
        few, every = (ranked(texts, "plum quince pear foo_fig.date", count) for count in (2, 1000))
    assert [hit[1:] for hit in few.hits] == [hit[1:] for hit in every.hits[:2]]


def test_counts_of_a_word_rank_a_message_above_those_of_the_same_length() -> None:
    texts = ["quince plum plum", "quince quince plum", "plum plum plum"]
    assert ranked(texts, "quince", 2).hits[0][1] == 2
