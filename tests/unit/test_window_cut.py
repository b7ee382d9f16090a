"""Windows keep their cut while they fit, and are cut with slack, at whole turns or whole units, otherwise."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.engine.window import SLACK, Window, cut_window, keep_window, tokens_of
from sidecar.server.sessions.timeline import SessionTimeline
from tests.e2e.conversations import DIALECTS, Speaker
from tests.guard_kit import Told


def _kept(told: Told, budget: int, cut: str | None = None, reserve: int = 0) -> Window:
    return told.run(lambda timeline: keep_window(timeline, budget, cut, reserve))


def _turns(dialect: str, count: int, seed: int = 1) -> list[bytes]:
    speaker = Speaker(dialect, seed)
    return [speaker.system("be brief"), *(message for _ in range(count) for message in speaker.turn(30))]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_session_that_fits_is_not_cut(dialect: str) -> None:
    messages = _turns(dialect, 5)
    window = _kept(Told(dialect, messages), 50_000)
    assert [entry.raw for entry in window.entries] == messages
    assert (window.system, window.cut, window.moved) == ([], None, False)


@settings(max_examples=40, deadline=None)
@given(
    dialect=st.sampled_from(DIALECTS),
    seed=st.integers(0, 1000),
    budget=st.integers(100, 6000),
    reserve=st.integers(0, 500),
)
def test_a_cut_leaves_slack_and_begins_with_a_turn(
    dialect: str, seed: int, budget: int, reserve: int
) -> None:
    messages = _turns(dialect, 12, seed)
    window = _kept(Told(dialect, messages), budget, None, reserve)
    if not window.moved:
        assert window.tokens <= max(budget - reserve, 0)
        return
    kept = [entry.raw for entry in window.entries]
    turns = {entry.turn for entry in window.entries}
    if len(turns) > 1:
        assert window.tokens <= budget * SLACK - reserve
        assert kept == messages[-len(kept) :]
    assert window.entries[0].opens_turn, "a window never begins in the middle of a turn"
    assert [entry.raw for entry in window.system] == [m for m in messages[:1] if m not in kept]
    again = _kept(Told(dialect, messages), budget * 2, window.cut, reserve)
    assert (again.entries and again.entries[-1].raw) == messages[-1]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_single_turn_keeps_its_opener_and_whole_units(dialect: str) -> None:
    speaker = Speaker(dialect, 5)
    question = speaker.user("go")
    groups = [speaker.group(30) for _ in range(20)]
    told = Told(dialect, [question, *(message for group in groups for message in group)])
    window = _kept(told, 1200)
    kept = [entry.raw for entry in window.entries]
    assert kept[0] == question and window.tokens <= 1200 * SLACK
    assert kept[1:] in [[m for group in groups[i:] for m in group] for i in range(20)]
    assert told.dialect.check([entry.reading for entry in window.entries]) == []


def test_the_last_call_is_never_cut_off() -> None:
    speaker = Speaker("openai", 6)
    call = speaker.new_call()
    last = [*speaker.assistant("", [call]), *speaker.results([(call, speaker.words(300))])]
    messages = [speaker.user("go"), *speaker.group(30), *last, *speaker.assistant(speaker.words(60))]
    window = _kept(Told("openai", messages), 450)
    assert [entry.raw for entry in window.entries] == [messages[0], *last, messages[-1]]


def test_the_last_call_stays_even_where_much_is_said_after_it() -> None:
    speaker = Speaker("openai", 7)
    call = speaker.new_call()
    last = [*speaker.assistant("", [call]), *speaker.results([(call, "done")])]
    said = [message for _ in range(6) for message in speaker.assistant(speaker.words(60))]
    window = _kept(Told("openai", [speaker.user("go"), *last, *said]), 300)
    assert [entry.raw for entry in window.entries[1:3]] == last


def test_a_cut_stays_where_it_is_while_it_fits() -> None:
    told = Told("openai", _turns("openai", 20))

    async def twice(timeline: SessionTimeline) -> tuple[Window, Window]:
        first = await keep_window(timeline, 1500, None)
        return first, await keep_window(timeline, 90_000, first.cut)

    first, second = told.run(twice)
    assert first.moved and not second.moved
    assert (second.cut, second.entries) == (first.cut, first.entries)


def test_a_smaller_target_moves_the_cut_of_a_window() -> None:
    told = Told("openai", _turns("openai", 20))

    async def smaller(timeline: SessionTimeline) -> tuple[Window, Window]:
        window = await keep_window(timeline, 50_000, None)
        return window, await cut_window(timeline, window.entries, 50_000, window.tokens // 2)

    window, half = told.run(smaller)
    assert tokens_of(half.entries) <= half.tokens <= window.tokens // 2 and half.moved
