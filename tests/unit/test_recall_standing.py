"""Standing instructions of a growing history: known ones plus new ones."""

from collections.abc import Iterator

import pytest

from sidecar.recall.instructions import standing, standing_since
from sidecar.store.sqlite.memory import MemoryStore
from tests.store_kit import Driver
from tests.unit.test_recall_retrieval import Talk

SAID = (
    "Always answer in French.",
    "Noted.",
    "From now on use tabs.",
    "Fine.",
    "The weather is nice, is it not?",
    "It is.",
    "I prefer short answers, please.",
    "As you like.",
    "Don't touch the garden hose while it rains outside in May.",
    "I shall not.",
    "always answer in french.",
    "I do.",
    "以后请用中文回答。",
    "好的。",
)


@pytest.fixture
def talk() -> Iterator[Talk]:
    with Driver(MemoryStore) as driver:
        yield Talk(driver)


@pytest.mark.parametrize("known", range(1, len(SAID)))
def test_what_came_since_is_added_to_what_is_known(known: int, talk: Talk) -> None:
    talk.say(*SAID)
    run = talk.driver.run
    before = run(standing(talk, known))
    new = run(talk.remarks(range(known + 1, len(SAID) + 1))).values()
    assert standing_since(new, before) == run(standing(talk, len(SAID)))


def test_of_the_same_words_the_newest_hold(talk: Talk) -> None:
    talk.say(*SAID)
    found = talk.driver.run(standing(talk, len(SAID)))
    assert [each.remark.position for each in found if "rench" in each.text] == [11]
