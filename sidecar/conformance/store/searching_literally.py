"""Searches for a literal text or a regular expression."""

from sidecar.conformance.expecting import expect, expect_equal, expect_raises
from sidecar.conformance.store.samples import (
    REF,
)
from sidecar.conformance.store.subject import Subject
from sidecar.conformance.store.suite import SUITE
from sidecar.store.search import SearchError
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Truncate

AREA = SUITE.area("literal", "search")

BROKEN = ("(", "[a", "a**", r"(?<=a)b", r"(a)\1", "\\", "(?P<x>", "a{100000}")


@AREA.check()
async def a_literal_is_found_anywhere_also_inside_words(store: Subject) -> None:
    """A literal is found anywhere also inside words."""
    await store.append(REF, "Kumquats: error E1234!", "the quick\nbrown fox", "nothing")
    for needle in ("umqua", "kumquat", "ats: err", "1234!", "E12", "!"):
        expect_equal(await store.positions(needle, "literal"), [1], "positions(needle, 'literal')")
    expect_equal(await store.positions("quick\nbro", "literal"), [2], "positions('quick\\nbro', 'literal')")


@AREA.check()
async def a_literal_is_compared_in_one_normal_form_without_case(store: Subject) -> None:
    """A literal is compared in one normal form without case."""
    await store.append(REF, "Cafe\u0301 STRASSE", "ﬁle １２３", "İstanbul")
    expect_equal(await store.positions("café", "literal"), [1], "positions('café', 'literal')")
    expect_equal(await store.positions("straße", "literal"), [1], "positions('straße', 'literal')")
    expect_equal(await store.positions("FILE 123", "literal"), [2], "positions('FILE 123', 'literal')")


@AREA.check()
async def parts_of_chinese_japanese_and_korean_text_are_found(store: Subject) -> None:
    """Parts of chinese japanese and korean text are found."""
    await store.append(REF, "我喜欢吃苹果和香蕉", "東京で寿司をたべました。", "오늘날씨가좋아요", "苹abc果")
    expect_equal(await store.positions("吃苹果", "literal"), [1], "positions('吃苹果', 'literal')")
    expect_equal(await store.positions("苹", "literal"), [1, 4], "positions('苹', 'literal')")
    expect_equal(await store.positions("た。", "literal"), [2], "positions('た。', 'literal')")
    expect_equal(await store.positions("날씨가", "literal"), [3], "positions('날씨가', 'literal')")


@AREA.check()
async def the_order_is_that_of_the_session_or_from_the_newest_backwards(store: Subject) -> None:
    """The order is that of the session or from the newest backwards."""
    await store.append(REF, *["plum"] * 5)
    expect_equal(await store.positions("lum", "literal"), [1, 2, 3, 4, 5], "positions('lum', 'literal')")
    expect_equal(
        await store.positions("lum", "literal", newest_first=True, limit=3),
        [5, 4, 3],
        "positions('lum', 'literal', newest_first=True, limit=3)",
    )


@AREA.check()
async def pages_follow_each_other_while_messages_are_added(store: Subject) -> None:
    """Pages follow each other while messages are added."""
    for newest_first in (False, True):
        ref = SessionRef("host", f"newest first: {newest_first}")
        await store.append(ref, *["plum" if index % 3 else "pear" for index in range(30)])
        whole = await store.positions("plum", "literal", ref=ref, limit=99, newest_first=newest_first)
        pages: list[int] = []
        cursor = None
        while True:
            found = await store.search(
                "plum", "literal", ref=ref, limit=7, newest_first=newest_first, cursor=cursor
            )
            pages += [hit.position for hit in found.hits]
            expect(found.complete, "this is not so: found.complete")
            cursor = found.next_cursor
            if cursor is None:
                break
            await store.append(ref, "another plum")
        expect_equal(pages, whole, "pages")


@AREA.check()
async def a_cursor_from_before_the_session_was_rewritten_is_refused(store: Subject) -> None:
    """A cursor from before the session was rewritten is refused."""
    await store.append(REF, *["plum"] * 5)
    cursor = (await store.search("plum", "literal", limit=2)).next_cursor
    await store.write(Truncate(REF, (await store.ids(REF))[3]))
    await expect_raises(
        SearchError,
        store.search("plum", "literal", cursor=cursor),
        "search('plum', 'literal', cursor=cursor)",
    )


@AREA.check()
async def a_cursor_that_is_none_is_refused(store: Subject) -> None:
    """A cursor that is none is refused."""
    await store.append(REF, "plum")
    for cursor in ("", "x", "s1.2", "s1.2.3.4", "s1.-2.3", "s1.².3", "s" + "9" * 99):
        await expect_raises(
            SearchError,
            store.search("plum", "literal", cursor=cursor),
            "search('plum', 'literal', cursor=cursor)",
        )


@AREA.check()
async def an_empty_literal_or_expression_is_refused(store: Subject) -> None:
    """An empty literal or expression is refused."""
    await store.append(REF, "plum")
    await expect_raises(SearchError, store.search("", "literal"), "search('', 'literal')")
    await expect_raises(SearchError, store.search("", "regex"), "search('', 'regex')")


@AREA.check()
async def odd_literals_are_found_where_they_are_and_break_nothing(store: Subject) -> None:
    """Odd literals are found where they are and break nothing."""
    await store.append(REF, "a\x00b", 'say "x" OR y*', "100%_done\\", "x" * 9000)
    expect_equal(await store.positions("\x00", "literal"), [1], "positions('\\x00', 'literal')")
    expect_equal(await store.positions('"x" OR y*', "literal"), [2], "positions('\"x\" OR y*', 'literal')")
    expect_equal(await store.positions("%_d", "literal"), [3], "positions('%_d', 'literal')")
    expect_equal(await store.positions("\\", "literal"), [3], "positions('\\\\', 'literal')")
    expect_equal(await store.positions("x" * 8000, "literal"), [4], "positions('x' * 8000, 'literal')")
    expect_equal(await store.positions("x" * 10000, "literal"), [], "positions('x' * 10000, 'literal')")
    expect_equal(await store.positions("\ud800", "literal"), [], "positions('\\ud800', 'literal')")


@AREA.check("regex")
async def an_expression_is_matched_against_the_text_as_written(store: Subject) -> None:
    """An expression is matched against the text as written."""
    await store.append(REF, "Error 42 at line 7", "error 42", "no number")
    expect_equal(await store.positions("Error \\d+", "regex"), [1], "positions('Error \\\\d+', 'regex')")
    expect_equal(
        await store.positions("(?i)ERROR\\s\\d+", "regex"),
        [1, 2],
        "positions('(?i)ERROR\\\\s\\\\d+', 'regex')",
    )
    expect_equal(
        await store.positions("^error|number$", "regex"), [2, 3], "positions('^error|number$', 'regex')"
    )
    expect_equal(
        await store.positions("\\d{2}", "regex", newest_first=True),
        [2, 1],
        "positions('\\\\d{2}', 'regex', newest_first=True)",
    )


@AREA.check("regex")
async def an_expression_that_backtracks_elsewhere_takes_no_time(store: Subject) -> None:
    """An expression that backtracks elsewhere takes no time."""
    await store.append(REF, "a" * 30000 + "!", "x")
    expect_equal(await store.positions("(a+)+$", "regex"), [], "positions('(a+)+$', 'regex')")
    expect_equal(await store.positions("(a|aa|a?)*b", "regex"), [], "positions('(a|aa|a?)*b', 'regex')")


@AREA.check("regex")
async def an_expression_that_is_none_is_refused_with_the_reason(store: Subject) -> None:
    """An expression that is none is refused with the reason."""
    await store.append(REF, "plum")
    for pattern in BROKEN:
        await expect_raises(SearchError, store.search(pattern, "regex"), "search(pattern, 'regex')")
