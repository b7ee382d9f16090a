"""Standing instructions, once found, are known without a search and survive a restart."""

from collections.abc import Iterator, Sequence

import pytest

from sidecar.recall.ledger import NEW, Ledger
from sidecar.recall.retrieval import Remark
from sidecar.store.search import SearchQuery, SearchResult
from sidecar.store.sqlite.memory import MemoryStore
from tests.store_kit import Driver
from tests.unit.test_recall_retrieval import Talk

PLAN = "Here is the plan:\n- [x] Sleep\n- [ ] Eat"
RULE = "Always knock first."


class Watched:
    """A history that counts its searches, and may have too little time for them."""

    def __init__(self, talk: Talk, *, is_whole: bool = True) -> None:
        self._talk = talk
        self.is_whole = is_whole
        self.searches = 0

    async def search(self, query: SearchQuery) -> SearchResult:
        self.searches += 1
        return await self._talk.search(query)

    async def remarks(self, positions: Sequence[int]) -> dict[int, Remark]:
        return await self._talk.remarks(positions)


@pytest.fixture
def talk() -> Iterator[Talk]:
    with Driver(MemoryStore) as driver:
        talk = Talk(driver)
        talk.say(RULE, PLAN, *(f"The ferry {number} left." for number in range(2 * NEW)))
        yield talk


def said(ledger: Ledger) -> tuple[list[str], list[str]]:
    plan = ledger.plan
    return [each.text for each in ledger.standing], [item.text for item in plan.items] if plan else []


def test_a_history_that_came_as_a_whole_is_searched_once(talk: Talk) -> None:
    ledger, source = Ledger(), Watched(talk)
    talk.driver.run(ledger.catch_up(source, 2 * NEW))
    assert said(ledger) == ([RULE], ["Sleep", "Eat"])
    searches = source.searches
    talk.driver.run(ledger.catch_up(source, 2 * NEW + 2))
    assert searches and source.searches == searches


def test_a_history_that_was_followed_is_never_searched(talk: Talk) -> None:
    ledger, source = Ledger(), Watched(talk)
    for position in range(1, NEW + 1):
        ledger.add(talk.driver.run(talk.remarks([position]))[position])
    talk.driver.run(ledger.catch_up(source, 2 * NEW))
    assert said(ledger) == ([RULE], ["Sleep", "Eat"])
    assert source.searches == 0 and ledger.told == 2 * NEW


def test_a_search_that_ran_out_of_time_is_repeated(talk: Talk) -> None:
    ledger = Ledger()
    talk.driver.run(ledger.catch_up(Watched(talk, is_whole=False), 2 * NEW))
    assert ledger.told == 0
    talk.driver.run(ledger.catch_up(Watched(talk), 2 * NEW))
    assert ledger.told == 2 * NEW


def test_a_saved_ledger_goes_on_with_the_same_history_alone(talk: Talk) -> None:
    ledger = Ledger()
    talk.driver.run(ledger.catch_up(Watched(talk), 2 * NEW))
    again, other = Ledger(), Ledger()
    again.restore(ledger.encoded("1.0"), "1.0")
    other.restore(ledger.encoded("1.0"), "1.1")
    assert said(again) == said(ledger) and again.told == ledger.told
    assert other.told == 0 and said(other) == ([], [])


def test_a_message_out_of_its_order_is_caught_up_with_later(talk: Talk) -> None:
    ledger = Ledger()
    ledger.add(talk.driver.run(talk.remarks([2]))[2])
    assert ledger.told == 0 and ledger.plan is None
