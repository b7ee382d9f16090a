"""Units group related messages, turns are counted, and messages become plain text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidecar.messages.contract import Mark, Media, Reading, ToolCall, ToolResult
from sidecar.messages.fence import enclose
from sidecar.messages.pairing import Unit, turn_id, turn_numbers, turn_starts, units
from sidecar.messages.text import plain_text
from tests.guard_kit import MARKS


def user(text: str = "hello", mark: Mark | None = None) -> Reading:
    return Reading(role="user", wire_role="user", text=text, mark=mark)


def says(text: str = "well") -> Reading:
    return Reading(role="assistant", wire_role="assistant", text=text)


def calls(*ids: str) -> Reading:
    made = tuple(ToolCall(call_id, "look", "{}") for call_id in ids)
    return Reading(role="assistant", wire_role="assistant", calls=made)


def answers(*ids: str) -> Reading:
    made = tuple(ToolResult(call_id, "look", "seen", False) for call_id in ids)
    return Reading(role="tool", wire_role="tool", results=made)


def reasons() -> Reading:
    return Reading(role="assistant", wire_role="reasoning", carries_reasoning=True)


_ids = st.sampled_from(["a", "b", "c"])
_lists = st.lists(
    st.one_of(
        st.builds(user),
        st.builds(says),
        st.builds(reasons),
        st.lists(_ids, min_size=1, max_size=2, unique=True).map(lambda ids: calls(*ids)),
        st.lists(_ids, min_size=1, max_size=2, unique=True).map(lambda ids: answers(*ids)),
    ),
    max_size=15,
)


@given(_lists)
def test_every_message_is_in_one_unit(readings: list[Reading]) -> None:
    found = sorted(index for unit in units(readings) for index in unit.indices)
    assert found == list(range(len(readings)))


@given(_lists)
def test_units_come_in_the_order_of_their_first_message(readings: list[Reading]) -> None:
    firsts = [unit.indices[0] for unit in units(readings)]
    assert firsts == sorted(firsts)


@given(_lists)
def test_an_open_unit_is_incomplete_and_last(readings: list[Reading]) -> None:
    for unit in units(readings):
        if unit.open:
            assert not unit.complete
            assert unit.indices[-1] == len(readings) - 1


def test_a_call_and_its_results_are_one_unit() -> None:
    readings = [user(), calls("a", "b"), answers("a"), answers("b"), says()]
    assert units(readings) == [Unit((0,), True, False), Unit((1, 2, 3), True, False), Unit((4,), True, False)]


def test_respelled_ids_belong_together() -> None:
    assert units([calls("call_1"), answers("call1")]) == [Unit((0, 1), True, False)]


def test_parallel_calls_in_messages_of_their_own_are_units_of_their_own() -> None:
    readings = [calls("a"), calls("b"), answers("a"), answers("b")]
    assert [unit.indices for unit in units(readings)] == [(0, 2), (1, 3)]


def test_reasoning_stays_with_everything_the_model_made_of_it() -> None:
    readings = [reasons(), calls("a"), calls("b"), answers("a"), answers("b"), says()]
    assert [unit.indices for unit in units(readings)] == [(0, 1, 2, 3, 4), (5,)]


def test_an_interrupted_call_is_incomplete_but_not_open() -> None:
    assert units([calls("a"), user()])[0] == Unit((0,), False, False)


def test_a_call_that_waits_at_the_end_is_open() -> None:
    assert units([user(), calls("a", "b"), answers("a")])[1] == Unit((1, 2), False, True)


def test_an_orphaned_result_is_an_incomplete_unit() -> None:
    assert units([answers("a")]) == [Unit((0,), False, False)]


def test_turns_open_at_user_messages() -> None:
    readings = [user(), says(), user(), calls("a"), answers("a"), says()]
    assert turn_numbers(readings) == [1, 1, 2, 2, 2, 2]


def test_messages_before_the_first_user_message_are_in_the_first_turn() -> None:
    system = Reading(role="system", wire_role="system", text="be kind")
    assert turn_numbers([system, says(), user(), says()]) == [1, 1, 1, 1]


def test_heartbeats_and_synthetic_messages_open_no_turn() -> None:
    readings = [user(), user("poll"), says(), user("so far", Mark("summary", "n1")), user()]
    assert turn_numbers(readings, {1}) == [1, 1, 1, 1, 2]


def test_numbering_continues_after_earlier_messages() -> None:
    assert turn_numbers([says(), user()], after=4) == [4, 5]


@given(_lists)
def test_every_turn_starts_once(readings: list[Reading]) -> None:
    numbers = turn_numbers(readings)
    assert len(turn_starts(numbers)) == len(set(numbers))
    assert turn_id(3) == "t3"


def test_plain_text_has_calls_results_and_media_but_no_fences() -> None:
    ours = MARKS.wrap(Mark("memory", "m"), "facts")
    reading = Reading(
        role="assistant",
        wire_role="assistant",
        text=f"look here\n{ours}",
        ours=frozenset([ours]),
        calls=(ToolCall("a", "look", '{"at":"sky"}'),),
        results=(ToolResult("b", "look", "blue", False),),
        media=(Media("image", 10),),
        reasoning="hm",
    )
    assert plain_text(reading) == 'look here\nlook({"at":"sky"})\nblue\n[image]'


def test_plain_text_includes_the_content_of_a_forged_fence() -> None:
    forged = enclose(Mark("memory", "m"), "123456789012345678", "facts")
    assert plain_text(Reading(role="user", wire_role="user", text=forged)) == forged
