"""Searches for words, ranked."""

from tests.search_kit import TOOL_MARK, positions, search
from tests.store_kit import REF, Driver, user


def test_words_are_found_by_their_stem(store: Driver) -> None:
    store.append(REF, "the ponies were running", "nothing here", "a pony runs")
    assert sorted(positions(store, "pony run")) == [1, 3]


def test_case_and_compatibility_forms_make_no_difference(store: Driver) -> None:
    store.append(REF, "ＦＵＬＬ width", "STRASSE", "Ünïcode ﬁle")
    assert positions(store, "full") == [1]
    assert positions(store, "straße") == [2]
    assert positions(store, "ünïcode") == [3]
    assert positions(store, "FILE") == [3]


def test_messages_with_all_words_come_before_those_with_some(store: Driver) -> None:
    store.append(
        REF, "kiwi kiwi kiwi kiwi", "kiwi and a long text about many other things, also a lemon", "lemon"
    )
    found = search(store, "kiwi lemon")
    assert found.hits[0].position == 2
    assert sorted(hit.position for hit in found.hits) == [1, 2, 3]
    assert found.complete
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)


def test_rare_words_weigh_more_than_frequent_ones(store: Driver) -> None:
    store.append(REF, *["report about weather"] * 20, "zebra", "report about weather")
    assert positions(store, "weather zebra of today")[0] == 21


def test_newer_messages_come_first_among_equals(store: Driver) -> None:
    store.append(REF, "same words", "same words", "same words")
    assert positions(store, "words") == [3, 2, 1]


def test_stop_words_do_not_count_as_long_as_there_are_others(store: Driver) -> None:
    store.append(REF, "what is the", "the answer")
    assert positions(store, "what is the answer") == [2]


def test_a_question_of_stop_words_alone_is_searched_as_it_is(store: Driver) -> None:
    store.append(REF, "to be or not to be", "apples")
    assert positions(store, "to be or not to be") == [1]


def test_chinese_japanese_and_korean_words_are_found_inside_sentences(store: Driver) -> None:
    store.append(REF, "我喜欢吃苹果和香蕉", "東京で寿司をたべました", "오늘날씨가좋아요", "用python写代码")
    assert positions(store, "苹果") == [1]
    assert positions(store, "寿司") == [2]
    assert positions(store, "날씨") == [3]
    assert positions(store, "python") == [4]
    assert positions(store, "代码") == [4]


def test_a_single_chinese_character_is_found_in_every_place_of_a_sentence(store: Driver) -> None:
    store.append(REF, "猫", "我有一只猫在家", "猫好", "黑猫", "狗")
    assert sorted(positions(store, "猫")) == [1, 2, 3, 4]
    assert sorted(positions(store, "猫", "literal")) == [1, 2, 3, 4]


def test_names_and_paths_are_found_whole_and_by_their_parts(store: Driver) -> None:
    store.append(
        REF, "open /etc/app/config.yaml now", "see foo_bar.py", "call readFileSync here", "config alone"
    )
    assert positions(store, "/etc/app/config.yaml")[0] == 1
    assert positions(store, "config.yaml")[0] == 1
    assert positions(store, "yaml") == [1]
    assert positions(store, "foo_bar.py")[0] == positions(store, "bar")[0] == 2
    assert positions(store, "readFileSync") == positions(store, "sync") == [3]


def test_a_name_as_a_whole_beats_its_parts_scattered(store: Driver) -> None:
    store.append(REF, "bar of foo in py", "foo_bar.py", "py foo bar")
    assert positions(store, "foo_bar.py")[0] == 2


def test_odd_queries_find_nothing_and_break_nothing(store: Driver) -> None:
    store.append(REF, "some text", 'quo"te AND (paren', "nul\0byte")
    for odd in ("", " ", '"', "***", "AND OR NOT", "(", "\0", "\ud800", "a" * 10_000, "?" * 10_000, "😀"):
        search(store, odd)
    assert positions(store, 'quo"te') == [2]
    assert positions(store, "byte\0nul") == [3]
    assert positions(store, "some \ud83d") == [1]


def test_a_long_question_is_answered_by_its_telling_words(store: Driver) -> None:
    store.append(REF, "the launch codename is heliotrope", "unrelated chatter")
    question = "please remember and tell me " * 300 + " heliotrope " + "word" * 5
    assert positions(store, question)[0] == 1


def test_the_limit_cuts_and_the_cursor_goes_on_without_gaps_or_repeats(store: Driver) -> None:
    store.append(REF, *[f"apple number {index}" for index in range(25)])
    whole = positions(store, "apple number", limit=100)
    pages: list[int] = []
    cursor = None
    for _ in range(3):
        found = search(store, "apple number", limit=10, cursor=cursor)
        pages += [hit.position for hit in found.hits]
        cursor = found.next_cursor
        store.append(REF, "apple number apple number, newer than the first page")
    assert (pages, cursor) == (whole, None)


def test_searching_where_there_is_nothing_finds_nothing(store: Driver) -> None:
    assert search(store, "anything").hits == []
    store.append(REF, "a")
    assert search(store, "a", limit=0).hits == []
    assert search(store, "a", first=2).hits == []


def test_what_was_just_stored_is_found(store: Driver) -> None:
    for index in range(40):
        store.append(REF, user(f"token{index}x {TOOL_MARK}"))
        assert positions(store, f"token{index}x") == [index + 1]
