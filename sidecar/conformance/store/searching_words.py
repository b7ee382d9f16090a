"""Searches for words, ranked."""

from sidecar.conformance.expecting import expect, expect_equal
from sidecar.conformance.store.samples import REF, TOOL_MARK, user
from sidecar.conformance.store.subject import Subject
from sidecar.conformance.store.suite import SUITE

AREA = SUITE.area("words", "search")


@AREA.check()
async def words_are_found_by_their_stem(store: Subject) -> None:
    """Words are found by their stem."""
    await store.append(REF, "the ponies were running", "nothing here", "a pony runs")
    expect_equal(sorted(await store.positions("pony run")), [1, 3], "sorted(positions('pony run'))")


@AREA.check()
async def case_and_compatibility_forms_make_no_difference(store: Subject) -> None:
    """Case and compatibility forms make no difference."""
    await store.append(REF, "ＦＵＬＬ width", "STRASSE", "Ünïcode ﬁle")
    expect_equal(await store.positions("full"), [1], "positions('full')")
    expect_equal(await store.positions("straße"), [2], "positions('straße')")
    expect_equal(await store.positions("ünïcode"), [3], "positions('ünïcode')")
    expect_equal(await store.positions("FILE"), [3], "positions('FILE')")


@AREA.check()
async def messages_with_all_words_come_before_those_with_some(store: Subject) -> None:
    """Messages with all words come before those with some."""
    await store.append(
        REF, "kiwi kiwi kiwi kiwi", "kiwi and a long text about many other things, also a lemon", "lemon"
    )
    found = await store.search("kiwi lemon")
    expect_equal(found.hits[0].position, 2, "found.hits[0].position")
    expect_equal(
        sorted(hit.position for hit in found.hits), [1, 2, 3], "sorted([hit.position for hit in found.hits])"
    )
    expect(found.complete, "this is not so: found.complete")
    scores = [hit.score for hit in found.hits]
    expect_equal(scores, sorted(scores, reverse=True), "scores")


@AREA.check()
async def rare_words_weigh_more_than_frequent_ones(store: Subject) -> None:
    """Rare words weigh more than frequent ones."""
    await store.append(REF, *["report about weather"] * 20, "zebra", "report about weather")
    expect_equal(
        (await store.positions("weather zebra of today"))[0], 21, "positions('weather zebra of today')[0]"
    )


@AREA.check()
async def newer_messages_come_first_among_equals(store: Subject) -> None:
    """Newer messages come first among equals."""
    await store.append(REF, "same words", "same words", "same words")
    expect_equal(await store.positions("words"), [3, 2, 1], "positions('words')")


@AREA.check()
async def stop_words_do_not_count_as_long_as_there_are_others(store: Subject) -> None:
    """Stop words do not count as long as there are others."""
    await store.append(REF, "what is the", "the answer")
    expect_equal(await store.positions("what is the answer"), [2], "positions('what is the answer')")


@AREA.check()
async def a_question_of_stop_words_alone_is_searched_as_it_is(store: Subject) -> None:
    """A question of stop words alone is searched as it is."""
    await store.append(REF, "to be or not to be", "apples")
    expect_equal(await store.positions("to be or not to be"), [1], "positions('to be or not to be')")


@AREA.check()
async def chinese_japanese_and_korean_words_are_found_inside_sentences(store: Subject) -> None:
    """Chinese japanese and korean words are found inside sentences."""
    await store.append(
        REF, "我喜欢吃苹果和香蕉", "東京で寿司をたべました", "오늘날씨가좋아요", "用python写代码"
    )
    expect_equal(await store.positions("苹果"), [1], "positions('苹果')")
    expect_equal(await store.positions("寿司"), [2], "positions('寿司')")
    expect_equal(await store.positions("날씨"), [3], "positions('날씨')")
    expect_equal(await store.positions("python"), [4], "positions('python')")
    expect_equal(await store.positions("代码"), [4], "positions('代码')")


@AREA.check()
async def a_single_chinese_character_is_found_in_every_place_of_a_sentence(store: Subject) -> None:
    """A single chinese character is found in every place of a sentence."""
    await store.append(REF, "猫", "我有一只猫在家", "猫好", "黑猫", "狗")
    expect_equal(sorted(await store.positions("猫")), [1, 2, 3, 4], "sorted(positions('猫'))")
    expect_equal(
        sorted(await store.positions("猫", "literal")), [1, 2, 3, 4], "sorted(positions('猫', 'literal'))"
    )


@AREA.check()
async def names_and_paths_are_found_whole_and_by_their_parts(store: Subject) -> None:
    """Names and paths are found whole and by their parts."""
    await store.append(
        REF, "open /etc/app/config.yaml now", "see foo_bar.py", "call readFileSync here", "config alone"
    )
    expect_equal(
        (await store.positions("/etc/app/config.yaml"))[0], 1, "positions('/etc/app/config.yaml')[0]"
    )
    expect_equal((await store.positions("config.yaml"))[0], 1, "positions('config.yaml')[0]")
    expect_equal(await store.positions("yaml"), [1], "positions('yaml')")
    expect(
        (await store.positions("foo_bar.py"))[0] == (await store.positions("bar"))[0] == 2,
        "this is not so: positions('foo_bar.py')[0] == positions('bar')[0] == 2",
    )
    expect(
        await store.positions("readFileSync") == await store.positions("sync") == [3],
        "this is not so: positions('readFileSync') == positions('sync') == [3]",
    )


@AREA.check()
async def a_name_as_a_whole_beats_its_parts_scattered(store: Subject) -> None:
    """A name as a whole beats its parts scattered."""
    await store.append(REF, "bar of foo in py", "foo_bar.py", "py foo bar")
    expect_equal((await store.positions("foo_bar.py"))[0], 2, "positions('foo_bar.py')[0]")


@AREA.check()
async def odd_queries_find_nothing_and_break_nothing(store: Subject) -> None:
    """Odd queries find nothing and break nothing."""
    await store.append(REF, "some text", 'quo"te AND (paren', "nul\x00byte")
    for odd in ("", " ", '"', "***", "AND OR NOT", "(", "\x00", "\ud800", "a" * 10000, "?" * 10000, "😀"):
        await store.search(odd)
    expect_equal(await store.positions('quo"te'), [2], "positions('quo\"te')")
    expect_equal(await store.positions("byte\x00nul"), [3], "positions('byte\\x00nul')")
    expect_equal(await store.positions("some \ud83d"), [1], "positions('some \\ud83d')")


@AREA.check()
async def a_long_question_is_answered_by_its_telling_words(store: Subject) -> None:
    """A long question is answered by its telling words."""
    await store.append(REF, "the launch codename is heliotrope", "unrelated chatter")
    question = "please remember and tell me " * 300 + " heliotrope " + "word" * 5
    expect_equal((await store.positions(question))[0], 1, "positions(question)[0]")


@AREA.check()
async def the_limit_cuts_and_the_cursor_goes_on_without_gaps_or_repeats(store: Subject) -> None:
    """The limit cuts and the cursor goes on without gaps or repeats."""
    await store.append(REF, *[f"apple number {index}" for index in range(25)])
    whole = await store.positions("apple number", limit=100)
    pages: list[int] = []
    cursor = None
    for _ in range(3):
        found = await store.search("apple number", limit=10, cursor=cursor)
        pages += [hit.position for hit in found.hits]
        cursor = found.next_cursor
        await store.append(REF, "apple number apple number, newer than the first page")
    expect_equal((pages, cursor), (whole, None), "pages, cursor")


@AREA.check()
async def searching_where_there_is_nothing_finds_nothing(store: Subject) -> None:
    """Searching where there is nothing finds nothing."""
    expect_equal((await store.search("anything")).hits, [], "search('anything').hits")
    await store.append(REF, "a")
    expect_equal((await store.search("a", limit=0)).hits, [], "search('a', limit=0).hits")
    expect_equal((await store.search("a", first=2)).hits, [], "search('a', first=2).hits")


@AREA.check()
async def what_was_just_stored_is_found(store: Subject) -> None:
    """What was just stored is found."""
    for index in range(40):
        await store.append(REF, user(f"token{index}x {TOOL_MARK}"))
        expect_equal(await store.positions(f"token{index}x"), [index + 1], "positions(f'token{index}x')")
