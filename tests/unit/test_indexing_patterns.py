"""What of a regular expression the index can help with."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.store.indexing.folding import fold
from sidecar.store.indexing.patterns import compile_pattern, required_text


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
