"""Messages edited by a host are recognised; others are not mistaken for them."""

from sidecar.messages.contract import Reading, ToolCall
from sidecar.server.sessions.transcript import match_edited, same_stamps


def user(text: str, stamp: int | None = None, inner_id: str | None = None) -> Reading:
    return Reading(role="user", wire_role="user", text=text, timestamp_ms=stamp, inner_id=inner_id)


def reply(text: str, stamp: int | None = None) -> Reading:
    return Reading(role="assistant", wire_role="assistant", text=text, timestamp_ms=stamp)


def matched(
    stored: list[Reading], seen: list[Reading], found: list[int | None], *, from_start: bool = True
) -> list[int | None]:
    """`found` after searching for edited messages."""
    completed = list(found)
    match_edited(stored, seen, completed, from_start=from_start)
    return completed


def test_as_many_messages_of_the_same_roles_between_known_ones_are_the_stored_ones() -> None:
    stored = [user("a"), reply("b"), user("c"), reply("d")]
    seen = [user("a"), reply("changed"), user("altogether"), reply("d")]
    assert matched(stored, seen, [0, None, None, 3]) == [0, 1, 2, 3]


def test_other_roles_between_known_ones_are_other_messages() -> None:
    stored = [user("a"), reply("b"), user("c")]
    assert matched(stored, [user("a"), user("new"), user("c")], [0, None, 2]) == [0, None, 2]


def test_another_number_of_messages_needs_the_words_to_agree() -> None:
    stored = [user("a"), reply("the build is green again"), user("c")]
    more = reply("The build is green again, and so are the tests.")
    seen = [user("a"), user("never stored"), reply("nor this"), more, user("c")]
    assert matched(stored, seen, [0, None, None, None, 2]) == [0, None, None, 1, 2]


def test_templates_that_differ_in_a_number_are_different_messages() -> None:
    stored = [user("a"), user("please look at issue 4 for me")]
    seen = [user("a"), user("please look at issue 8 for me")]
    assert matched(stored, seen, [0, None]) == [0, None]


def test_short_texts_are_not_compared() -> None:
    assert matched([user("a"), reply("ok done")], [user("a"), reply("ok done then")], [0, None]) == [0, None]


def test_the_start_counts_only_where_it_is_the_start_of_the_history() -> None:
    stored, seen = [user("a"), reply("b")], [user("changed"), reply("b")]
    assert matched(stored, seen, [None, 1]) == [0, 1]
    assert matched(stored, seen, [None, 1], from_start=False) == [None, 1]


def test_ids_and_time_stamps_that_differ_speak_against_it() -> None:
    for kept, given in (
        (user("b", inner_id="1"), user("c", inner_id="2")),
        (user("b", stamp=1), user("c", stamp=2)),
    ):
        assert matched([user("a"), kept, user("z")], [user("a"), given, user("z")], [0, None, 2])[1] is None


def test_a_call_is_not_an_edited_reply() -> None:
    call = Reading(role="assistant", wire_role="assistant", calls=(ToolCall("c", "f", "{}"),))
    assert matched([user("a"), reply("b"), user("z")], [user("a"), call, user("z")], [0, None, 2])[1] is None


def test_one_time_stamp_on_each_side_is_one_message_whatever_it_says() -> None:
    stored = [user("a", 1), reply("b", 2), user("c", 3)]
    assert same_stamps(stored, [reply("changed", 2), user("new", 9)]) == {0: 1}


def test_a_repeated_timestamp_is_no_evidence() -> None:
    assert same_stamps([user("a", 1), user("b", 1)], [user("b", 1)]) == {}
    assert same_stamps([user("b", 1)], [user("a", 1), user("b", 1)]) == {}
    assert same_stamps([user("b", 1)], [reply("b", 1)]) == {}
