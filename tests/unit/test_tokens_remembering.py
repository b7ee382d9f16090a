"""Cached counts: the same text is counted once."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.tokens.choose import LONG, SHORT, RememberingCounter, counter
from sidecar.tokens.estimate import EstimateCounter


class Letters:
    """Counts letters, and records its calls."""

    name = "letters"
    exact = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def count(self, text: str) -> int:
        """The length of the text."""
        self.asked.append(text)
        return len(text)


@given(st.lists(st.text(st.characters(), max_size=40)))
def test_counts_are_those_of_the_counter(texts: list[str]) -> None:
    plain = EstimateCounter()
    remembering = RememberingCounter(plain)
    assert [remembering.count(text) for text in texts * 2] == [plain.count(text) for text in texts * 2]


def test_passages_and_texts_of_our_own_are_counted_once() -> None:
    letters = Letters()
    remembering = RememberingCounter(letters)
    for length in (1, SHORT, SHORT + 1, LONG):
        assert [remembering.count("x" * length) for _ in range(3)] == [length] * 3
    assert len(letters.asked) == 4


def test_a_very_long_text_is_not_kept() -> None:
    letters = Letters()
    remembering = RememberingCounter(letters)
    assert [remembering.count("x" * (LONG + 1)) for _ in range(2)] == [LONG + 1] * 2
    assert len(letters.asked) == 2


def test_it_stands_in_for_the_counter() -> None:
    remembering = RememberingCounter(EstimateCounter())
    remembering.load()
    assert (remembering.name, remembering.exact) == (EstimateCounter.name, False)
    assert counter("estimate").name == EstimateCounter.name
