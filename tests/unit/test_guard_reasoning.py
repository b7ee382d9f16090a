"""Reasoning and its followers are sent together or not at all, whatever was chosen."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.engine.calls import Assembly, Kept, Overflow
from sidecar.messages.contract import Reading
from sidecar.messages.pairing import units
from sidecar.server.sessions.timeline import SessionTimeline
from tests.e2e.conversations import DIALECTS, Speaker
from tests.guard_kit import Told


def _talk(speaker: Speaker, turns: int) -> list[bytes]:
    messages: list[bytes] = []
    for number in range(turns):
        call = speaker.new_call()
        messages += [speaker.user(speaker.words(10)), *speaker.assistant("", [call], thinking="let me look")]
        messages += speaker.results([(call, speaker.words(30))])
        messages += speaker.assistant(f"answer {number} {speaker.words(20)}", thinking="so it is")
    return messages


def _torn(said: Sequence[Reading], messages: Sequence[bytes], sent: Sequence[bytes]) -> list[str]:
    """Units of the history, such as reasoning, that an answer includes only in part."""
    there = set(sent)
    return [
        f"{[messages[i] in there for i in unit.indices]} of {unit.indices}"
        for unit in units(said)
        if any(said[i].carries_reasoning for i in unit.indices)
        and len({messages[i] in there for i in unit.indices if not said[i].results}) > 1
    ]


@settings(max_examples=60, deadline=None)
@given(
    dialect=st.sampled_from(DIALECTS),
    seed=st.integers(0, 10_000),
    turns=st.integers(1, 4),
    share=st.floats(0.05, 1.1),
    chosen=st.floats(0.2, 1.0),
)
def test_an_answer_never_tears_reasoning_from_what_follows_from_it(
    dialect: str, seed: int, turns: int, share: float, chosen: float
) -> None:
    random = Random(seed)
    messages = _talk(Speaker(dialect, seed), turns)
    story = Told(dialect, messages)

    async def answer(timeline: SessionTimeline) -> list[bytes]:
        entries = (await timeline.tail(1 << 40)).entries
        picked = [Kept(entry) for entry in entries if random.random() < chosen]
        room = int(sum(entry.tokens for entry in entries) * share)
        stubs = story.guard.no_stubs()
        try:
            return (await story.guard.answer(stubs, Assembly(items=picked), timeline, room)).messages
        except Overflow as overflow:
            fits = overflow.required
            return (await story.guard.answer(stubs, Assembly(items=picked), timeline, fits)).messages

    sent = story.run(answer)
    said = [story.dialect.read(raw) for raw in messages]
    assert story.dialect.check([story.dialect.read(raw) for raw in sent]) == []
    assert not _torn(said, messages, sent)


@pytest.mark.parametrize("short", [1, 5, 20])
def test_a_budget_that_cuts_into_the_newest_turn_takes_a_message_with_its_reasoning(short: int) -> None:
    speaker = Speaker("openai-responses")
    messages = [speaker.user("why?"), *speaker.assistant(speaker.words(40), thinking="hm " * 40)]
    story = Told("openai-responses", messages)

    async def answer(timeline: SessionTimeline) -> list[bytes]:
        entries = (await timeline.tail(1 << 40)).entries
        room = sum(entry.tokens for entry in entries) - short
        assembly = Assembly(items=[Kept(entry) for entry in entries])
        return (await story.guard.answer(story.guard.no_stubs(), assembly, timeline, room)).messages

    assert story.run(answer) == messages[:1]
