"""The provider accepts arranged lists, whatever was dropped, moved or duplicated before."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.messages.contract import Leave, Mark, Missing, Placement, Reading, Send, ToolCall, ToolResult
from sidecar.messages.dialects import dialect
from sidecar.messages.validity import CHECKS, RULES, arrange

NAMES = sorted(RULES)


def user(text: str = "hello") -> Reading:
    return Reading(role="user", wire_role="user", text=text)


def says(text: str = "well") -> Reading:
    return Reading(role="assistant", wire_role="assistant", text=text)


def calls(*ids: str, text: str = "") -> Reading:
    made = tuple(ToolCall(call_id, "look", "{}") for call_id in ids)
    return Reading(role="assistant", wire_role="assistant", text=text, calls=made)


def answers(*ids: str, text: str = "") -> Reading:
    made = tuple(ToolResult(call_id, "look", "seen", False) for call_id in ids)
    return Reading(role="user" if text else "tool", wire_role="user", text=text, results=made)


def reasons() -> Reading:
    return Reading(role="assistant", wire_role="reasoning", reasoning="hm", carries_reasoning=True)


def system() -> Reading:
    return Reading(role="system", wire_role="system", text="be kind")


def carried_out(readings: Sequence[Reading], placements: Sequence[Placement]) -> list[Reading]:
    """The list that the placements describe."""
    done: list[Reading] = []
    for placement in placements:
        if isinstance(placement, Send):
            done.append(readings[placement.index])
        elif isinstance(placement, Missing):
            result = ToolResult(placement.call.id, placement.call.name, "no result recorded", False)
            mark = Mark("noResult", "")
            done.append(Reading(role="tool", wire_role="user", results=(result,), mark=mark))
    return done


def sent(readings: Sequence[Reading], name: str, *, cut: bool = False) -> list[Reading]:
    return carried_out(readings, arrange(readings, RULES[name], cut=cut))


_ids = st.sampled_from(["call_1", "call1", "toolu-2", "c", "d", ""])
_messages = st.one_of(
    st.builds(user, st.sampled_from(["hi", "", " \n"])),
    st.builds(says, st.sampled_from(["yes", "", "no"])),
    st.builds(
        lambda ids, text: calls(*ids, text=text), st.lists(_ids, max_size=3), st.sampled_from(["", "t"])
    ),
    st.builds(lambda ids: answers(*ids), st.lists(_ids, min_size=1, max_size=2)),
    st.builds(
        lambda ids, text: answers(*ids, text=text), st.lists(_ids, min_size=1, max_size=2), st.just("and")
    ),
    st.builds(reasons),
    st.builds(system),
    st.just(Reading(role="other", wire_role="compactionSummary")),
)


@st.composite
def damaged_conversations(draw: st.DrawFn) -> list[Reading]:
    """A valid conversation after dropping, duplicating and moving messages."""
    sound: list[Reading] = []
    for turn in range(draw(st.integers(1, 5))):
        sound.append(user(f"turn {turn}"))
        for step in range(draw(st.integers(0, 3))):
            ids = [f"call_{turn}_{step}_{n}" for n in range(draw(st.integers(1, 3)))]
            if draw(st.booleans()):
                ids = [f"call_{n}" for n in range(len(ids))]
            sound.append(calls(*ids))
            sound.extend(answers(call_id) for call_id in ids)
        sound.append(says())
    kept = [message for message in sound if draw(st.integers(0, 9)) > 1]
    for _ in range(draw(st.integers(0, 3))):
        if kept:
            kept.insert(draw(st.integers(0, len(kept))), kept[draw(st.integers(0, len(kept) - 1))])
    if draw(st.booleans()):
        kept = draw(st.permutations(kept))
    return kept


anything = st.one_of(st.lists(_messages, max_size=14), damaged_conversations())


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=150, deadline=None)
@given(readings=anything, cut=st.booleans())
def test_an_arranged_list_has_no_problem(name: str, readings: list[Reading], cut: bool) -> None:
    assert CHECKS[name](sent(readings, name, cut=cut)) == []


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=150, deadline=None)
@given(readings=anything, cut=st.booleans())
def test_arranging_an_arranged_list_changes_nothing(name: str, readings: list[Reading], cut: bool) -> None:
    once = sent(readings, name, cut=cut)
    assert arrange(once, RULES[name], cut=cut) == [Send(index) for index in range(len(once))]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=100, deadline=None)
@given(readings=anything)
def test_every_message_is_named_once(name: str, readings: list[Reading]) -> None:
    placements = arrange(readings, RULES[name], cut=False)
    named = [placement.index for placement in placements if not isinstance(placement, Missing)]
    assert sorted(named) == list(range(len(readings)))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=100, deadline=None)
@given(readings=anything)
def test_messages_without_results_keep_their_order(name: str, readings: list[Reading]) -> None:
    placements = arrange(readings, RULES[name], cut=False)
    order = [p.index for p in placements if isinstance(p, Send) and not readings[p.index].results]
    assert order == sorted(order)


@pytest.mark.parametrize("name", NAMES)
def test_a_sound_list_is_left_alone(name: str) -> None:
    sound = [
        user(),
        calls("a", "b"),
        answers("a"),
        answers("b"),
        says(),
        user(),
        calls("c"),
        answers("c"),
        says(),
    ]
    assert arrange(sound, RULES[name], cut=True) == [Send(index) for index in range(len(sound))]


@pytest.mark.parametrize("name", NAMES)
def test_an_interrupted_call_gets_a_result_in_its_place(name: str) -> None:
    placements = arrange([user(), calls("a", "b"), answers("a"), user()], RULES[name], cut=False)
    missing = Missing(ToolCall("b", "look", "{}"), 1)
    assert placements == [Send(0), Send(1), Send(2), missing, Send(3)]


@pytest.mark.parametrize("name", NAMES)
def test_a_call_without_an_id_gets_no_result_that_nobody_made(name: str) -> None:
    closed = [user(), calls(""), user()]
    assert arrange(closed, RULES[name], cut=False) == [Leave(1, "call-without-result"), Send(0), Send(2)]
    answered = [user(), calls(""), answers(""), user()]
    assert arrange(answered, RULES[name], cut=False) == [Send(index) for index in range(4)]


@pytest.mark.parametrize("name", NAMES)
def test_calls_at_the_very_end_stay_open(name: str) -> None:
    placements = arrange([user(), calls("a", "b"), answers("a")], RULES[name], cut=False)
    assert placements == [Send(0), Send(1), Send(2)]


@pytest.mark.parametrize("name", NAMES)
def test_a_displaced_result_moves_up_to_its_call(name: str) -> None:
    placements = arrange([user(), calls("a"), user("wait"), answers("a")], RULES[name], cut=False)
    assert placements == [Send(0), Send(1), Send(3), Send(2)]


@pytest.mark.parametrize("name", NAMES)
def test_a_result_without_its_call_is_left_out(name: str) -> None:
    placements = arrange([user(), answers("a"), says()], RULES[name], cut=False)
    assert placements == [Leave(1, "result-without-call"), Send(0), Send(2)]


@pytest.mark.parametrize("name", NAMES)
def test_an_id_used_again_in_a_later_turn_goes_with_the_nearest_call(name: str) -> None:
    readings = [user(), calls("a"), answers("a"), user(), calls("a"), answers("a"), says()]
    assert arrange(readings, RULES[name], cut=False) == [Send(index) for index in range(len(readings))]


@pytest.mark.parametrize("name", NAMES)
def test_of_two_messages_with_one_result_the_fuller_one_stays(name: str) -> None:
    readings = [user(), calls("a", "b"), answers("a"), answers("a", "b"), says()]
    left = Leave(2, "repeated-result")
    assert arrange(readings, RULES[name], cut=False) == [left, Send(0), Send(1), Send(3), Send(4)]
    unknown = [user(), calls("a"), answers("a"), answers("a", "b"), says()]
    left = Leave(3, "result-without-call")
    assert arrange(unknown, RULES[name], cut=False) == [left, Send(0), Send(1), Send(2), Send(4)]


@pytest.mark.parametrize("name", NAMES)
def test_empty_messages_are_left_out(name: str) -> None:
    placements = arrange([user(), says(""), says("yes")], RULES[name], cut=False)
    assert placements == [Leave(1, "empty"), Send(0), Send(2)]


def test_anthropic_starts_with_a_user() -> None:
    readings = [system(), says(), calls("a"), answers("a"), user()]
    assert [p.index for p in arrange(readings, RULES["anthropic"], cut=False) if isinstance(p, Send)] == [
        0,
        4,
    ]


def test_openai_may_start_with_a_greeting_unless_the_beginning_was_cut() -> None:
    readings = [system(), says("welcome"), user()]
    assert all(isinstance(p, Send) for p in arrange(readings, RULES["openai"], cut=False))
    assert Leave(1, "starts-without-user") in arrange(readings, RULES["openai"], cut=True)


def test_anthropic_answers_neighbouring_calls_together() -> None:
    readings = [user(), calls("a"), calls("b"), answers("a"), answers("b")]
    assert arrange(readings, RULES["anthropic"], cut=False) == [Send(index) for index in range(5)]


def test_openai_answers_each_message_that_calls_at_once() -> None:
    readings = [user(), calls("a"), calls("b"), answers("a"), answers("b")]
    assert arrange(readings, RULES["openai"], cut=False) == [Send(0), Send(1), Send(3), Send(2), Send(4)]


def test_anthropic_accepts_results_before_text_in_one_message() -> None:
    readings = [user(), calls("a", "b"), answers("a", text="and"), answers("b")]
    assert arrange(readings, RULES["anthropic"], cut=False) == [Send(0), Send(1), Send(3), Send(2)]


def test_openclaw_pairs_respelled_ids_that_openai_must_not_send() -> None:
    readings = [user(), calls("call_1"), answers("call1"), says()]
    assert arrange(readings, RULES["openclaw"], cut=False) == [Send(index) for index in range(4)]
    assert Leave(2, "call-id-differs") in arrange(readings, RULES["openai"], cut=False)


def test_reasoning_is_left_out_with_the_item_after_it() -> None:
    placements = arrange([user(), reasons(), user()], RULES["openai-responses"], cut=False)
    assert Leave(1, "reasoning-without-item") in placements


def test_unknown_roles_are_sent() -> None:
    strange = Reading(role="other", wire_role="weather")
    for name in NAMES:
        assert arrange([user(), strange], RULES[name], cut=False) == [Send(0), Send(1)]


def test_an_interrupted_call_whose_result_is_not_text_is_left_out() -> None:
    items = [
        b'{"type":"message","role":"user","content":"find me a tool"}',
        b'{"type":"tool_search_call","call_id":"c1","execution":"client","arguments":{"query":"x"}}',
        b'{"type":"message","role":"user","content":"never mind"}',
    ]
    responses = dialect("openai-responses")
    readings = [responses.read(item) for item in items]
    placed = responses.arrange(readings)
    assert [p.index for p in placed if isinstance(p, Send)] == [0, 2]
    assert not any(isinstance(p, Missing) for p in placed)
    assert [p.index for p in responses.arrange(readings[:2]) if isinstance(p, Send)] == [0, 1]
