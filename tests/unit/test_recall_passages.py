"""Passages of long texts, and reduced results."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.recall.passages import PASSAGE, passages, reduced

TEXTS = st.text(st.sampled_from("ab .\n。字!\r"), max_size=4000)


@given(TEXTS)
def test_passages_hold_the_whole_text_in_order(text: str) -> None:
    assert "".join("".join(passages(text)).split()) == "".join(text.split())


@given(TEXTS)
def test_no_passage_is_much_longer_than_others(text: str) -> None:
    assert all(len(piece) <= 2 * PASSAGE for piece in passages(text))


def test_a_passage_ends_with_a_sentence() -> None:
    text = "The cabin has a stove. " * 200
    assert all(piece.rstrip().endswith(".") for piece in passages(text))


def test_wide_characters_make_shorter_passages() -> None:
    assert max(map(len, passages("今天天气很好。" * 400))) < PASSAGE / 2


@given(TEXTS, st.integers(100, 2000))
def test_a_reduced_text_has_about_the_requested_length(text: str, most: int) -> None:
    assert len(reduced(text, most)) <= most + 20


def test_a_reduced_result_keeps_its_ends_and_its_errors() -> None:
    noise = "all fine here\n" * 300
    found = reduced(f"collected 12 items\n{noise}ERROR tests/test_login.py: boom\n{noise}1 failed", 600)
    assert found.startswith("collected 12 items")
    assert "ERROR tests/test_login.py: boom" in found
    assert found.endswith("1 failed")
