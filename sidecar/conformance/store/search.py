"""Searches for words, literals and regular expressions, with and without filters."""

from __future__ import annotations

from sidecar.conformance.kit import expect, expect_equal, expect_raises
from sidecar.conformance.store.samples import REF, TOOL_MARK, reply, user
from sidecar.conformance.store.subject import Subject, check
from sidecar.store.errors import SessionMissing
from sidecar.store.search import SearchError, SearchKind
from sidecar.store.stored import SessionRef
from sidecar.store.writes import Truncate


@check("words", needs=("search",))
async def words_are_found_by_their_stem(store: Subject) -> None:
    await store.append(REF, "the ponies were running", "nothing here", "a pony runs")
    expect_equal(sorted(await store.positions("pony run")), [1, 3])


@check("words", needs=("search",))
async def case_and_compatibility_forms_make_no_difference(store: Subject) -> None:
    await store.append(REF, "ＦＵＬＬ width", "STRASSE", "Ünïcode ﬁle")
    expect_equal(await store.positions("full"), [1])
    expect_equal(await store.positions("straße"), [2])
    expect_equal(await store.positions("ünïcode"), [3])
    expect_equal(await store.positions("FILE"), [3])


@check("words", needs=("search",))
async def messages_with_all_words_come_before_those_with_some(store: Subject) -> None:
    await store.append(
        REF, "kiwi kiwi kiwi kiwi", "kiwi and a long text about many other things, also a lemon", "lemon"
    )
    found = await store.search("kiwi lemon")
    expect_equal(found.hits[0].position, 2)
    expect_equal(sorted(hit.position for hit in found.hits), [1, 2, 3])
    expect(found.complete)
    scores = [hit.score for hit in found.hits]
    expect_equal(scores, sorted(scores, reverse=True))


@check("words", needs=("search",))
async def rare_words_weigh_more_than_frequent_ones(store: Subject) -> None:
    await store.append(REF, *["report about weather"] * 20, "zebra", "report about weather")
    expect_equal((await store.positions("weather zebra of today"))[0], 21)


@check("words", needs=("search",))
async def newer_messages_come_first_among_equals(store: Subject) -> None:
    await store.append(REF, "same words", "same words", "same words")
    expect_equal(await store.positions("words"), [3, 2, 1])


@check("words", needs=("search",))
async def stop_words_do_not_count_as_long_as_there_are_others(store: Subject) -> None:
    await store.append(REF, "what is the", "the answer")
    expect_equal(await store.positions("what is the answer"), [2])


@check("words", needs=("search",))
async def a_question_of_stop_words_alone_is_searched_as_it_is(store: Subject) -> None:
    await store.append(REF, "to be or not to be", "apples")
    expect_equal(await store.positions("to be or not to be"), [1])


@check("words", needs=("search",))
async def chinese_japanese_and_korean_words_are_found_inside_sentences(store: Subject) -> None:
    await store.append(
        REF, "我喜欢吃苹果和香蕉", "東京で寿司をたべました", "오늘날씨가좋아요", "用python写代码"
    )
    expect_equal(await store.positions("苹果"), [1])
    expect_equal(await store.positions("寿司"), [2])
    expect_equal(await store.positions("날씨"), [3])
    expect_equal(await store.positions("python"), [4])
    expect_equal(await store.positions("代码"), [4])


@check("words", needs=("search",))
async def a_single_chinese_character_is_found_in_every_place_of_a_sentence(store: Subject) -> None:
    await store.append(REF, "猫", "我有一只猫在家", "猫好", "黑猫", "狗")
    expect_equal(sorted(await store.positions("猫")), [1, 2, 3, 4])
    expect_equal(sorted(await store.positions("猫", "literal")), [1, 2, 3, 4])


@check("words", needs=("search",))
async def names_and_paths_are_found_whole_and_by_their_parts(store: Subject) -> None:
    await store.append(
        REF, "open /etc/app/config.yaml now", "see foo_bar.py", "call readFileSync here", "config alone"
    )
    expect_equal((await store.positions("/etc/app/config.yaml"))[0], 1)
    expect_equal((await store.positions("config.yaml"))[0], 1)
    expect_equal(await store.positions("yaml"), [1])
    expect((await store.positions("foo_bar.py"))[0] == (await store.positions("bar"))[0] == 2)
    expect(await store.positions("readFileSync") == await store.positions("sync") == [3])


@check("words", needs=("search",))
async def a_name_as_a_whole_beats_its_parts_scattered(store: Subject) -> None:
    await store.append(REF, "bar of foo in py", "foo_bar.py", "py foo bar")
    expect_equal((await store.positions("foo_bar.py"))[0], 2)


@check("words", needs=("search",))
async def odd_queries_find_nothing_and_break_nothing(store: Subject) -> None:
    await store.append(REF, "some text", 'quo"te AND (paren', "nul\x00byte")
    for odd in ("", " ", '"', "***", "AND OR NOT", "(", "\x00", "\ud800", "a" * 10000, "?" * 10000, "😀"):
        await store.search(odd)
    expect_equal(await store.positions('quo"te'), [2])
    expect_equal(await store.positions("byte\x00nul"), [3])
    expect_equal(await store.positions("some \ud83d"), [1])


@check("words", needs=("search",))
async def a_long_question_is_answered_by_its_significant_words(store: Subject) -> None:
    await store.append(REF, "the launch codename is heliotrope", "unrelated chatter")
    question = "please remember and tell me " * 300 + " heliotrope " + "word" * 5
    expect_equal((await store.positions(question))[0], 1)


@check("words", needs=("search",))
async def the_limit_cuts_and_the_cursor_goes_on_without_gaps_or_repeats(store: Subject) -> None:
    await store.append(REF, *[f"apple number {index}" for index in range(25)])
    whole = await store.positions("apple number", limit=100)
    pages: list[int] = []
    cursor = None
    for _ in range(3):
        found = await store.search("apple number", limit=10, cursor=cursor)
        pages += [hit.position for hit in found.hits]
        cursor = found.next_cursor
        await store.append(REF, "apple number apple number, newer than the first page")
    expect_equal((pages, cursor), (whole, None))


@check("words", needs=("search",))
async def searching_an_empty_range_finds_nothing(store: Subject) -> None:
    expect_equal((await store.search("anything")).hits, [])
    await store.append(REF, "a")
    expect_equal((await store.search("a", limit=0)).hits, [])
    expect_equal((await store.search("a", first=2)).hits, [])


@check("words", needs=("search",))
async def new_messages_are_found_at_once(store: Subject) -> None:
    for index in range(40):
        await store.append(REF, user(f"token{index}x {TOOL_MARK}"))
        expect_equal(await store.positions(f"token{index}x"), [index + 1])


BROKEN = ("(", "[a", "a**", r"(?<=a)b", r"(a)\1", "\\", "(?P<x>", "a{100000}")


@check("literal", needs=("search",))
async def a_literal_is_found_anywhere_also_inside_words(store: Subject) -> None:
    await store.append(REF, "Kumquats: error E1234!", "the quick\nbrown fox", "nothing")
    for needle in ("umqua", "kumquat", "ats: err", "1234!", "E12", "!"):
        expect_equal(await store.positions(needle, "literal"), [1])
    expect_equal(await store.positions("quick\nbro", "literal"), [2])


@check("literal", needs=("search",))
async def a_literal_is_compared_in_one_normal_form_without_case(store: Subject) -> None:
    await store.append(REF, "Cafe\u0301 STRASSE", "ﬁle １２３", "İstanbul")
    expect_equal(await store.positions("café", "literal"), [1])
    expect_equal(await store.positions("straße", "literal"), [1])
    expect_equal(await store.positions("FILE 123", "literal"), [2])


@check("literal", needs=("search",))
async def parts_of_chinese_japanese_and_korean_text_are_found(store: Subject) -> None:
    await store.append(REF, "我喜欢吃苹果和香蕉", "東京で寿司をたべました。", "오늘날씨가좋아요", "苹abc果")
    expect_equal(await store.positions("吃苹果", "literal"), [1])
    expect_equal(await store.positions("苹", "literal"), [1, 4])
    expect_equal(await store.positions("た。", "literal"), [2])
    expect_equal(await store.positions("날씨가", "literal"), [3])


@check("literal", needs=("search",))
async def results_come_in_session_order_or_newest_first(store: Subject) -> None:
    await store.append(REF, *["plum"] * 5)
    expect_equal(await store.positions("lum", "literal"), [1, 2, 3, 4, 5])
    expect_equal(await store.positions("lum", "literal", newest_first=True, limit=3), [5, 4, 3])


@check("literal", needs=("search",))
async def pages_follow_each_other_while_messages_are_added(store: Subject) -> None:
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
            expect(found.complete)
            cursor = found.next_cursor
            if cursor is None:
                break
            await store.append(ref, "another plum")
        expect_equal(pages, whole)


@check("literal", needs=("search",))
async def a_cursor_from_before_the_session_was_rewritten_is_refused(store: Subject) -> None:
    await store.append(REF, *["plum"] * 5)
    cursor = (await store.search("plum", "literal", limit=2)).next_cursor
    await store.write(Truncate(REF, (await store.ids(REF))[3]))
    await expect_raises(
        SearchError,
        store.search("plum", "literal", cursor=cursor),
        "search('plum', 'literal', cursor=cursor)",
    )


@check("literal", needs=("search",))
async def an_invalid_cursor_is_refused(store: Subject) -> None:
    await store.append(REF, "plum")
    for cursor in ("", "x", "s1.2", "s1.2.3.4", "s1.-2.3", "s1.².3", "s" + "9" * 99):
        await expect_raises(
            SearchError,
            store.search("plum", "literal", cursor=cursor),
            "search('plum', 'literal', cursor=cursor)",
        )


@check("literal", needs=("search",))
async def an_empty_literal_or_expression_is_refused(store: Subject) -> None:
    await store.append(REF, "plum")
    await expect_raises(SearchError, store.search("", "literal"), "search('', 'literal')")
    await expect_raises(SearchError, store.search("", "regex"), "search('', 'regex')")


@check("literal", needs=("search",))
async def odd_literals_are_found_where_they_are_and_break_nothing(store: Subject) -> None:
    await store.append(REF, "a\x00b", 'say "x" OR y*', "100%_done\\", "x" * 9000)
    expect_equal(await store.positions("\x00", "literal"), [1])
    expect_equal(await store.positions('"x" OR y*', "literal"), [2])
    expect_equal(await store.positions("%_d", "literal"), [3])
    expect_equal(await store.positions("\\", "literal"), [3])
    expect_equal(await store.positions("x" * 8000, "literal"), [4])
    expect_equal(await store.positions("x" * 10000, "literal"), [])
    expect_equal(await store.positions("\ud800", "literal"), [])


@check("literal", needs=("regex", "search"))
async def an_expression_is_matched_against_the_text_as_written(store: Subject) -> None:
    await store.append(REF, "Error 42 at line 7", "error 42", "no number")
    expect_equal(await store.positions("Error \\d+", "regex"), [1])
    expect_equal(await store.positions("(?i)ERROR\\s\\d+", "regex"), [1, 2])
    expect_equal(await store.positions("^error|number$", "regex"), [2, 3])
    expect_equal(await store.positions("\\d{2}", "regex", newest_first=True), [2, 1])


@check("literal", needs=("regex", "search"))
async def an_expression_that_backtracks_elsewhere_takes_linear_time(store: Subject) -> None:
    await store.append(REF, "a" * 30000 + "!", "x")
    expect_equal(await store.positions("(a+)+$", "regex"), [])
    expect_equal(await store.positions("(a|aa|a?)*b", "regex"), [])


@check("literal", needs=("regex", "search"))
async def an_invalid_expression_is_refused(store: Subject) -> None:
    await store.append(REF, "plum")
    for pattern in BROKEN:
        await expect_raises(SearchError, store.search(pattern, "regex"), "search(pattern, 'regex')")


KINDS: tuple[SearchKind, ...] = ("words", "literal")
COUNT = 60


async def fill(store: Subject) -> None:
    """Store sixty messages: in threes a user, an assistant that calls a tool, its answer."""
    for number in range(0, COUNT, 3):
        tool = "bash" if number % 2 else "read file"
        await store.append(
            REF,
            user(f"plum {number}", timestamp_ms=1000 + number, turn_id=f"turn\n{number}"),
            reply(f"plum call{TOOL_MARK}{tool}", timestamp_ms=1001 + number),
            reply(f"plum result{TOOL_MARK}{tool}", "tool", timestamp_ms=1002 + number),
        )


async def expect_positions(store: Subject, expected: list[int], **members: object) -> None:
    """Require that every kind of search finds exactly these positions."""
    for kind in KINDS:
        found = sorted(await store.positions("plum", kind, limit=100, **members))
        expect_equal(found, expected, f"positions found by {kind} with {members}")


@check("filters", needs=("search",))
async def only_positions_in_the_range_are_found(store: Subject) -> None:
    """A range of positions includes both ends and nothing beyond."""
    await fill(store)
    await expect_positions(store, list(range(7, 24)), first=7, last=23)


@check("filters", needs=("search",))
async def only_the_requested_roles_are_found(store: Subject) -> None:
    """Messages of other roles are not found."""
    await fill(store)
    both = [each for each in range(1, COUNT + 1) if each % 3 != 2]
    await expect_positions(store, list(range(1, COUNT, 3)), roles=("user",))
    await expect_positions(store, both, roles=("user", "tool"))
    await expect_positions(store, [], roles=("nobody",))


@check("filters", needs=("search",))
async def only_messages_of_the_tool_are_found(store: Subject) -> None:
    """Messages without the tool are not found; its name must match as a whole."""
    await fill(store)
    expected = [each for each in range(1, COUNT + 1) if each % 6 in (5, 0)]
    await expect_positions(store, expected, tool="bash")
    await expect_positions(store, [], tool="read")


@check("filters", needs=("search",))
async def only_messages_of_the_turn_are_found(store: Subject) -> None:
    """Messages of other turns are not found, whatever the name of the turn."""
    await fill(store)
    await expect_positions(store, [10, 11, 12], turn_id="turn\n9")
    await expect_positions(store, [], turn_id="t4")


@check("filters", needs=("search",))
async def only_messages_in_the_time_range_are_found(store: Subject) -> None:
    """A time range includes both ends and nothing beyond."""
    await fill(store)
    await expect_positions(store, list(range(11, 22)), since_ms=1010, until_ms=1020)
    await expect_positions(store, [], until_ms=999)


@check("filters", needs=("search",))
async def all_filters_apply_at_once(store: Subject) -> None:
    """Only messages that match all filters are found."""
    await fill(store)
    expected = [each for each in range(12, 51) if each % 6 == 0]
    await expect_positions(store, expected, roles=("tool",), tool="bash", since_ms=1010, last=50)


@check("filters", needs=("search",))
async def another_agent_finds_nothing_in_a_session(store: Subject) -> None:
    """A search by an agent that does not own the session is refused."""
    await store.append(REF, "plum", agent_id="ann")
    await expect_positions(store, [1], agent_id="ann")
    await expect_positions(store, [1])
    for kind in KINDS:
        await expect_raises(SessionMissing, store.search("plum", kind, agent_id="bob"), f"a search by {kind}")
