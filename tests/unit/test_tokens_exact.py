import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.origin import install_command
from sidecar.tokens import choose
from sidecar.tokens.choose import CounterUnavailable, counter
from sidecar.tokens.exact import PACKAGES, ExactCounter

O200K = ExactCounter("o200k_base")
TEXTS = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parents[2].glob("spec/**/*.md"))]


def test_known_texts_have_their_known_counts() -> None:
    assert O200K.count("hello world") == 2
    assert O200K.count("antidisestablishmentarianism") == 6
    assert ExactCounter("cl100k_base").count("hello world") == 2


def test_empty_text_needs_no_vocabulary() -> None:
    unloaded = ExactCounter("o200k_base")
    assert unloaded.count("") == 0
    assert unloaded._vocabulary is None  # pyright: ignore[reportPrivateUsage]


def test_text_that_looks_like_a_special_token_counts_as_plain_text() -> None:
    assert O200K.count("<|endoftext|>") > 1


def test_a_lone_surrogate_counts_as_the_replacement_character() -> None:
    assert O200K.count("cut \ud83d off") == O200K.count("cut \ufffd off")


def test_two_surrogates_that_make_a_pair_count_as_their_character() -> None:
    assert O200K.count("\ud83d\ude00") == O200K.count("\U0001f600")


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_the_packages_with_vocabularies_agree_on_everything(name: str) -> None:
    first, second = (opened(name) for opened in PACKAGES.values())

    @given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | st.sampled_from(TEXTS))
    def agree(text: str) -> None:
        assert first.count(text) == second.count(text)

    agree()


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_any_text_can_be_counted(text: str) -> None:
    assert O200K.count(text) >= bool(text)


def test_counting_in_slices_changes_the_count_by_less_than_one_in_a_thousand() -> None:
    lines = "".join(f"line {number}: the quick brown fox, {number * 7919 % 1000}\n" for number in range(8000))
    whole = O200K.load().count(lines)
    assert abs(O200K.count(lines) - whole) < whole / 1000


def test_long_text_without_any_break_is_counted() -> None:
    assert O200K.count("a" * 200_000) > 10_000


@pytest.mark.parametrize(
    ("name", "used", "exact"),
    [
        ("auto", "o200k_base", True),
        ("o200k", "o200k_base", True),
        ("cl100k", "cl100k_base", True),
        ("estimate", "estimate-1", False),
    ],
)
def test_a_setting_chooses_its_counter(name: choose.CounterName, used: str, exact: bool) -> None:
    chosen = counter(name)
    assert (chosen.name, chosen.exact) == (used, exact)


def test_the_same_setting_gives_the_same_counter() -> None:
    assert counter("auto") is counter("o200k")


@pytest.fixture
def without_vocabularies(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(choose, "vocabularies_installed", lambda: False)
    yield


@pytest.mark.usefixtures("without_vocabularies")
def test_auto_estimates_where_no_vocabulary_is_installed() -> None:
    assert counter("auto").name == "estimate-1"


@pytest.mark.usefixtures("without_vocabularies")
def test_requesting_a_missing_vocabulary_says_what_to_install() -> None:
    with pytest.raises(CounterUnavailable, match=re.escape(install_command("tokens"))):
        counter("cl100k")
