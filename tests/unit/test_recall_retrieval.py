"""Passages and instructions out of a real store."""

from collections.abc import Iterator, Sequence

import pytest

from sidecar.recall.instructions import standing
from sidecar.recall.recollection import HEADER, Recollection
from sidecar.recall.retrieval import Passage, Remark, retrieve, users_word
from sidecar.recall.situations import situation
from sidecar.store.search import SearchQuery, SearchResult
from sidecar.store.sqlite.memory import MemoryStore
from sidecar.store.stored import NewMessage
from tests.store_kit import REF, Driver


class Talk:
    """A stored conversation of user and assistant, which is a `RemarkSource`."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._texts: list[tuple[str, str]] = []

    def say(self, *texts: str) -> None:
        for text in texts:
            role = "assistant" if len(self._texts) % 2 else "user"
            self._texts.append((role, text))
            message = NewMessage(body=text.encode(), role=role, opens_turn=role == "user", timestamp_ms=0)
            self.driver.append(REF, message)

    async def search(self, query: SearchQuery) -> SearchResult:
        return await self.driver.store.search(REF, query)  # pyright: ignore

    async def remarks(self, positions: Sequence[int]) -> dict[int, Remark]:
        return {p: Remark(p, f"t{(p + 1) // 2}", *_with_time(self._texts[p - 1])) for p in positions}

    def retrieved(self, prompt: str, last: int | None = None, reach: int = 1) -> list[Passage]:
        return self.driver.run(retrieve(self, situation(prompt, []), last or len(self._texts), reach=reach))

    def standing(self) -> list[str]:
        return [each.text for each in self.driver.run(standing(self, len(self._texts)))]


def _with_time(pair: tuple[str, str]) -> tuple[str, int, str]:
    return pair[0], 0, pair[1]


@pytest.fixture
def talk() -> Iterator[Talk]:
    with Driver(MemoryStore) as driver:
        yield Talk(driver)


def test_messages_about_the_prompt_come_first(talk: Talk) -> None:
    talk.say(*(f"filler number {n} of nothing" for n in range(40)))
    talk.say("The wifi password of the cabin is heron-42.", "Noted.")
    talk.say(*(f"more filler {n}" for n in range(40)))
    assert talk.retrieved("What is the wifi password of the cabin?")[0].remark.position == 41


def test_chinese_is_found_by_pairs_of_characters(talk: Talk) -> None:
    talk.say("你好", "你好！", "今天我在绿禾公园看到了樱花", "真美", "我喜欢面食", "我也是")
    assert talk.retrieved("我在绿禾公园看到了什么？")[0].remark.position == 3


def test_nothing_is_found_after_the_last_position(talk: Talk) -> None:
    talk.say("heron one", "a", "heron two", "b")
    assert {p.remark.position for p in talk.retrieved("heron", last=2)} <= {1, 2}


def test_the_short_reply_to_a_hit_comes_along(talk: Talk) -> None:
    talk.say("Which painters would you look at first?", "Raphael and Titian.", "ok", "fine")
    assert {1, 2} <= {passage.remark.position for passage in talk.retrieved("painters")}


def test_the_outcome_two_messages_after_a_hit_comes_with_it(talk: Talk) -> None:
    talk.say(
        "hi", "Hello!", "I am in trouble today.", "Tell me.", "A speech next week frightens me.", "Oh", "no"
    )
    assert {p.remark.position for p in talk.retrieved("trouble", reach=2)} == {1, 2, 3, 4, 5}
    assert {p.remark.position for p in talk.retrieved("trouble")} == {2, 3, 4}


def test_the_fitting_part_of_a_long_message_is_taken(talk: Talk) -> None:
    filler = "Nothing of interest happens in this sentence. " * 60
    talk.say("hi", f"{filler}The harbour gate opens with code 7731. {filler}")
    best = talk.retrieved("code of the harbour gate")[0]
    assert "7731" in best.text
    assert len(best.text) < len(filler)
    assert best.of > 1


def test_the_users_word_comes_before_what_the_user_was_told(talk: Talk) -> None:
    talk.say("the zebra plan costs 40 euros", "the zebra plan costs 50 euros")
    assert talk.retrieved("zebra plan")[0].remark.role == "user"


def test_where_both_say_as_much_the_users_word_counts_little_more() -> None:
    assert 1 < users_word([("user", 20), ("assistant", 30), ("user", 30), ("assistant", 20)]) < 1.2


def test_where_the_assistant_goes_on_at_length_the_users_word_counts_twice() -> None:
    assert users_word([("user", 20), ("assistant", 500)]) > 2


def test_what_a_friend_said_comes_before_what_fits_less(talk: Talk) -> None:
    talk.say("Anna: my zebra is well today", "Ben: my zebra got a striped saddle today")
    assert talk.retrieved("What saddle did the zebra get?")[0].remark.role == "assistant"


@pytest.mark.parametrize(
    "said",
    ["The book reminds me to keep going and never give up.", "I try to always be early.", "We never met."],
)
def test_facts_about_people_are_not_rules(talk: Talk, said: str) -> None:
    talk.say(said, "I see.", "And you?", "Fine.")
    assert talk.standing() == []


@pytest.mark.parametrize(
    "said",
    [
        "Always show amounts in euros.",
        "From now on answer in French, please.",
        "I prefer short answers with examples.",
        "No, use tabs instead of spaces.",
        "Please never push to main.",
        "以后请用中文回答我的问题。",
        "请记住我对花生过敏。",
    ],
)
def test_standing_instructions_are_recognised(talk: Talk, said: str) -> None:
    talk.say("What is the time?", "Noon.", said, "Understood.", "And the weather?", "Fine.")
    assert talk.standing() == [said]


def test_the_assistants_words_are_no_instructions(talk: Talk) -> None:
    talk.say("hi", "Always remember to save your work.")
    assert talk.standing() == []


def test_rules_come_before_preferences_and_newer_before_older(talk: Talk) -> None:
    talk.say("I prefer tea.", "ok", "Always knock first.", "ok", "Never call me Bob.", "ok")
    assert talk.standing() == ["Never call me Bob.", "Always knock first.", "I prefer tea."]


def test_a_recollection_fits_and_has_the_newest_first(talk: Talk) -> None:
    talk.say(*(f"heron sighting number {n} at the lake" for n in range(60)))
    recollection = Recollection(300, lambda text: len(text) // 4 + 1, [])
    recollection.add(talk.retrieved("heron sighting lake"), 300)
    lines = recollection.text().split("\n(")
    positions = [position for position, _ in recollection.shown]
    assert lines[0] == HEADER
    assert len(lines) - 1 == len(positions) > 3
    assert len(recollection.text()) // 4 <= 300
    numbers = [int(line.split("number ")[1].split()[0]) for line in lines[1:]]
    assert numbers == sorted(numbers, reverse=True)


def test_known_text_is_not_recalled_again(talk: Talk) -> None:
    talk.say("heron one", "ok", "heron two", "ok")
    found = talk.retrieved("heron")
    recollection = Recollection(300, len, [passage.key for passage in found])
    recollection.add(found, 300)
    assert recollection.text() == ""
