"""What texts and questions are taken apart into."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.store.indexing.folding import fold
from sidecar.store.indexing.pieces import Piece, pieces
from sidecar.store.indexing.questions import MOST_TERMS, question
from sidecar.store.indexing.stemming import stem
from sidecar.store.indexing.terms import RUN, document_terms, expand


def words_of(text: str) -> set[str]:
    return {word for token in document_terms(text).tokens for word in expand(token).words}


def test_english_words_become_stems_and_others_stay() -> None:
    assert [stem(word) for word in ("ponies", "running", "relational", "is", "ünder", "x1ing")] == [
        "poni", "run", "relat", "is", "ünder", "x1ing",
    ]  # fmt: skip


def test_terms_are_counted() -> None:
    assert document_terms("run runs Running ran").counts == {"run": 3, "ran": 1}


def test_names_are_terms_as_a_whole_and_in_parts() -> None:
    assert set(document_terms("foo_bar.py").counts) == {"foo", "bar", "py", "foo_bar.py"}
    assert set(document_terms("parseHTTPServer2").counts) == {"parsehttpserver2", "pars", "http", "server2"}
    assert set(document_terms("é parseIt").counts) == {"é", "parseit", "pars", "it"}


def test_chinese_japanese_and_korean_runs_become_pairs_and_their_last_character() -> None:
    assert set(document_terms("我吃苹果a").counts) == {"我吃", "吃苹", "苹果", "果", "a"}
    assert document_terms("猫 猫猫").counts == {"猫": 1, "猫猫": 1}
    assert set(document_terms("ｶﾀｶﾅ 사과").counts) == {"カタ", "タカ", "カナ", "ナ", "사과", "과"}


def test_a_question_of_several_characters_asks_for_pairs_alone() -> None:
    assert question("吃苹果").required == ("吃苹", "苹果")
    assert question("吃苹果").helpful == ()
    assert question("果").required == ("果",)


def test_a_run_too_long_to_be_a_term_is_noted() -> None:
    found = document_terms("short " + "x" * 65)
    assert set(found.counts) == {"short"}
    assert found.has_long_run
    assert not document_terms("x" * 64).has_long_run


def test_questions_lose_their_stop_words_but_not_all_their_words() -> None:
    assert question("What is the Name of it?").required == ("name",)
    assert question("to be or not to be").required == ("to", "be", "or", "not")
    assert question("").required == ()


def test_too_many_terms_are_cut_to_the_longest() -> None:
    asked = question(" ".join(f"w{index}" for index in range(200)) + " extraordinary")
    assert len(asked.required) == MOST_TERMS
    assert "extraordinari" in asked.required


def test_a_literal_falls_into_whole_and_open_runs() -> None:
    assert pieces("rror: disk fu") == [
        Piece("rror", False, True), Piece("disk", True, True), Piece("fu", True, False),
    ]  # fmt: skip
    assert pieces("!") == []


@given(st.text(max_size=60) | st.text("aB1_.-/ é苹果\u0301ﬁßİ\n", max_size=60))
def test_every_run_of_the_folded_text_is_among_the_words_or_too_long(text: str) -> None:
    found = document_terms(text)
    words = words_of(text) | set(found.counts)
    for match in RUN.finditer(fold(text)):
        run = match[0]
        assert run in words or len(run) > 64 or all(run[i : i + 2] in words for i in range(len(run) - 1))
        if len(run) > 64 and run not in words:
            assert found.has_long_run or run[:2] in words


@given(st.text(max_size=40))
def test_folding_is_stable(text: str) -> None:
    assert fold(fold(text)) == fold(text)
