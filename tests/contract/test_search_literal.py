"""Searches for a literal text or a regular expression."""

import pytest

from sidecar.store.search import SearchError
from sidecar.store.writes import Truncate
from tests.search_kit import positions, search
from tests.store_kit import REF, Driver


def test_a_literal_is_found_anywhere_also_inside_words(store: Driver) -> None:
    store.append(REF, "Kumquats: error E1234!", "the quick\nbrown fox", "nothing")
    for needle in ("umqua", "kumquat", "ats: err", "1234!", "E12", "!"):
        assert positions(store, needle, "literal") == [1], needle
    assert positions(store, "quick\nbro", "literal") == [2]


def test_a_literal_is_compared_in_one_normal_form_without_case(store: Driver) -> None:
    store.append(REF, "Cafe\u0301 STRASSE", "ﬁle １２３", "İstanbul")
    assert positions(store, "café", "literal") == [1]
    assert positions(store, "straße", "literal") == [1]
    assert positions(store, "FILE 123", "literal") == [2]


def test_parts_of_chinese_japanese_and_korean_text_are_found(store: Driver) -> None:
    store.append(REF, "我喜欢吃苹果和香蕉", "東京で寿司をたべました。", "오늘날씨가좋아요", "苹abc果")
    assert positions(store, "吃苹果", "literal") == [1]
    assert positions(store, "苹", "literal") == [1, 4]
    assert positions(store, "た。", "literal") == [2]
    assert positions(store, "날씨가", "literal") == [3]


def test_the_order_is_that_of_the_session_or_from_the_newest_backwards(store: Driver) -> None:
    store.append(REF, *["plum"] * 5)
    assert positions(store, "lum", "literal") == [1, 2, 3, 4, 5]
    assert positions(store, "lum", "literal", newest_first=True, limit=3) == [5, 4, 3]


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_follow_each_other_while_messages_are_added(store: Driver, newest_first: bool) -> None:
    store.append(REF, *["plum" if index % 3 else "pear" for index in range(30)])
    whole = positions(store, "plum", "literal", limit=99, newest_first=newest_first)
    pages: list[int] = []
    cursor = None
    while True:
        found = search(store, "plum", "literal", limit=7, newest_first=newest_first, cursor=cursor)
        pages += [hit.position for hit in found.hits]
        assert found.complete
        cursor = found.next_cursor
        if cursor is None:
            break
        store.append(REF, "another plum")
    assert pages == whole


def test_a_cursor_from_before_the_session_was_rewritten_is_refused(store: Driver) -> None:
    store.append(REF, *["plum"] * 5)
    cursor = search(store, "plum", "literal", limit=2).next_cursor
    store.write(Truncate(REF, store.ids(REF)[3]))
    with pytest.raises(SearchError, match="begin anew"):
        search(store, "plum", "literal", cursor=cursor)


@pytest.mark.parametrize("cursor", ["", "x", "s1.2", "s1.2.3.4", "s1.-2.3", "s1.²." + "3", "s" + "9" * 99])
def test_a_cursor_that_is_none_is_refused(store: Driver, cursor: str) -> None:
    store.append(REF, "plum")
    with pytest.raises(SearchError, match="cursor"):
        search(store, "plum", "literal", cursor=cursor)


def test_an_empty_literal_or_expression_is_refused(store: Driver) -> None:
    store.append(REF, "plum")
    with pytest.raises(SearchError, match="empty"):
        search(store, "", "literal")
    with pytest.raises(SearchError, match="empty"):
        search(store, "", "regex")


def test_odd_literals_are_found_where_they_are_and_break_nothing(store: Driver) -> None:
    store.append(REF, "a\0b", 'say "x" OR y*', "100%_done\\", "x" * 9_000)
    assert positions(store, "\0", "literal") == [1]
    assert positions(store, '"x" OR y*', "literal") == [2]
    assert positions(store, "%_d", "literal") == [3]
    assert positions(store, "\\", "literal") == [3]
    assert positions(store, "x" * 8_000, "literal") == [4]
    assert positions(store, "x" * 10_000, "literal") == []
    assert positions(store, "\ud800", "literal") == []


def test_an_expression_is_matched_against_the_text_as_written(store: Driver) -> None:
    store.append(REF, "Error 42 at line 7", "error 42", "no number")
    assert positions(store, r"Error \d+", "regex") == [1]
    assert positions(store, r"(?i)ERROR\s\d+", "regex") == [1, 2]
    assert positions(store, r"^error|number$", "regex") == [2, 3]
    assert positions(store, r"\d{2}", "regex", newest_first=True) == [2, 1]


def test_an_expression_that_backtracks_elsewhere_takes_no_time(store: Driver) -> None:
    store.append(REF, "a" * 30_000 + "!", "x")
    assert positions(store, r"(a+)+$", "regex") == []
    assert positions(store, r"(a|aa|a?)*b", "regex") == []


@pytest.mark.parametrize("pattern", ["(", "[a", "a**", r"(?<=a)b", r"(a)\1", "\\", "(?P<x>", "a{100000}"])
def test_an_expression_that_is_none_is_refused_with_the_reason(store: Driver, pattern: str) -> None:
    store.append(REF, "plum")
    with pytest.raises(SearchError, match=r"RE2: ."):
        search(store, pattern, "regex")
