"""The terms of texts, questions and patterns."""

import re

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.store.search import SearchError, SearchQuery
from sidecar.store.search.query import compile_pattern, matcher, required_text
from sidecar.store.search.terms import (
    MOST_TERMS,
    document_terms,
    fold,
    index_both,
    parts_of,
    question,
    stem,
    written,
    written_part,
)


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


def test_chinese_japanese_and_korean_runs_become_their_characters_and_pairs_of_them() -> None:
    assert set(document_terms("我吃苹果a").counts) == {*"我吃苹果", "我吃", "吃苹", "苹果", "a"}
    assert document_terms("猫 猫猫") == ({"猫": 3, "猫猫": 1}, 4)
    assert set(document_terms("ｶﾀｶﾅ 사과").counts) == {*"カタナ", "カタ", "タカ", "カナ", *"사과", "사과"}


def test_a_question_of_several_characters_asks_for_pairs_alone() -> None:
    assert question("吃苹果").required == ("吃苹", "苹果")
    assert question("吃苹果").helpful == ()
    assert question("果").required == ("果",)


def test_a_run_too_long_to_be_a_term_is_left_out() -> None:
    assert set(document_terms("short " + "x" * 65).counts) == {"short"}
    assert set(document_terms("x" * 64).counts) == {"x" * 64}


def test_questions_lose_their_stop_words_but_not_all_their_words() -> None:
    assert question("What is the Name of it?").required == ("name",)
    assert question("to be or not to be").required == ("to", "be", "or", "not")
    assert question("").required == ()


def test_too_many_terms_are_cut_to_the_longest() -> None:
    asked = question(" ".join(f"w{index}" for index in range(200)) + " extraordinary")
    assert len(asked.required) == MOST_TERMS
    assert "extraordinari" in asked.required


@given(
    st.text(max_size=60)
    | st.text("aB1_.-/ é苹果\u0301ﬁßİ\n\0", max_size=60)
    | st.text("aBcD1._ ", max_size=40)
)
@example("A0a")
def test_sqlite_finds_a_prepared_text_by_every_term_and_every_part_of_it(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5 (terms, detail = none, tokenize = 'ascii')")
    connection.execute("INSERT INTO words (terms) VALUES (?)", (index_both(text.split()),))
    terms = [*map(written, document_terms(text).counts), *map(written_part, parts_of(fold(text)))]
    for term in terms:
        found = connection.execute("SELECT count(*) FROM words WHERE words MATCH ?", (f'"{term}"',)).get
        assert found == 1, term


@given(st.text("ab苹果 _.\n", max_size=20), st.text("ab苹果 _.\n", max_size=20))
def test_every_part_of_a_literal_is_a_part_of_a_text_with_it(before: str, literal: str) -> None:
    text = f"{before}{literal}{before}"
    assert set(parts_of(fold(literal))) <= set(parts_of(fold(text)))


@given(st.text(max_size=40))
def test_folding_is_stable(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("pattern", "required"),
    [
        ("Error 42", ["error 4"]),
        (r"(?i)error\s+code", ["erro", "cod"]),
        (r"foo\.bar(\d+|x)baz", ["foo.ba", "ba"]),
        (r"abcd*efgh?ij", ["ab", "ef"]),
        (r"abc{2,3}def", ["de"]),
        (r"[a\]b]cde$", ["cd"]),
        ("foo|bar", []),
        ("(foo(bar))baz", []),
        (r"\Qfoo.bar\E", []),
        (r"caf\x{e9}s", []),
        ("größe", []),
        ("数据库连接", ["数据库连"]),
        ("[数]据库连接", ["据库连"]),
        ("カタカナ数据", []),
        ("(?s)", []),
        ("ab", []),
    ],
)
def test_required_texts_are_those_that_every_match_has(pattern: str, required: list[str]) -> None:
    assert required_text(pattern) == required


LITERAL = ["abc", "d", "数据库", "中", r"\.", "(de)"]
ATOMS = st.sampled_from([*LITERAL, ".", "[xy]", r"\d", "(?:ab|c)", "e*", "f+", "g?", "h{2}", "^", "$"])


@given(st.lists(ATOMS, min_size=1, max_size=7).map("".join), st.text("abcdefgh12.xy数据库中", max_size=30))
def test_a_text_that_matches_has_every_required_text(pattern: str, text: str) -> None:
    if compile_pattern(pattern)(text):
        assert all(required in fold(text) for required in required_text(pattern))


@given(st.lists(ATOMS, min_size=1, max_size=7).map("".join), st.text("abcdefgh12.xy\n", max_size=30))
def test_simple_expressions_mean_what_they_mean_in_python(pattern: str, text: str) -> None:
    python = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    assert compile_pattern(pattern)(text) == (python.search(text) is not None)


def test_a_literal_asks_for_whole_words_and_for_all_of_its_text() -> None:
    wanted = matcher(SearchQuery(text="rror: disk fu", kind="literal"), lambda: False)
    assert wanted.parts == ["dis", "isk", "or:", "ror", "rro"]
    assert wanted.groups == [["disk"]]
    assert matcher(SearchQuery(text="!", kind="literal"), lambda: False).parts == []
    assert matcher(SearchQuery(text="ab\ud800cde", kind="literal"), lambda: False).parts == ["cde"]
    assert len(matcher(SearchQuery(text="".join(map(str, range(900))), kind="literal"), bool).parts) <= 64


def test_a_long_text_is_processed_in_pieces_to_its_end() -> None:
    matches = compile_pattern("(?:needle|[a-z]{300}q)$")
    hay = "hay " * 400_000
    assert matches(hay + "needle")
    assert not matches(hay + "needles")
    assert compile_pattern("^hay")(hay)
    assert not compile_pattern("^needle")(hay + "needle" + hay)
    assert compile_pattern("needle")(hay + "needle" + hay)


def test_a_long_text_is_given_up_when_time_is_over() -> None:
    expression = "a?" * 200 + "a" * 200 + "b"
    assert compile_pattern(expression, lambda: True)("a" * 5_000_000) is None


def test_an_expression_that_is_too_long_is_refused_with_its_length() -> None:
    compile_pattern("a" * 1_000)
    with pytest.raises(SearchError, match="1001 characters"):
        compile_pattern("a" * 1_001)
