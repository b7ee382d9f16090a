"""The minimum is system messages, the newest user message, and the last tool group after it."""

import pytest

from sidecar.engine.guard.minimum import minimum
from tests.e2e.conversations import DIALECTS, Speaker
from tests.guard_kit import Told


def _minimum(dialect: str, messages: list[bytes], heartbeats: set[int] | None = None) -> list[bytes]:
    return [entry.raw for entry in Told(dialect, messages, heartbeats or set()).run(minimum)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_is_the_question_and_its_last_group(dialect: str) -> None:
    speaker = Speaker(dialect, 1)
    rules, note = speaker.system("be brief"), speaker.system("it is Monday")
    question, group = speaker.user("go"), speaker.group()
    messages = [rules, *speaker.turn(), note, question, *speaker.group(), *group]
    assert _minimum(dialect, messages) == [rules, note, question, *group]


@pytest.mark.parametrize("steps", [0, 1, 200])
def test_groups_of_earlier_turns_do_not_count(steps: int) -> None:
    speaker = Speaker("openai", 2)
    earlier = [speaker.user("go"), *(message for _ in range(steps) for message in speaker.group())]
    question = speaker.user("and now?")
    assert _minimum("openai", [*earlier, question]) == [question]


def test_a_question_far_back_is_found() -> None:
    speaker = Speaker("openai", 3)
    question, last = speaker.user("go"), speaker.group(40)
    loop = [message for _ in range(150) for message in speaker.group(40)]
    assert _minimum("openai", [*speaker.turn(), question, *loop, *last]) == [question, *last]


def test_a_group_larger_than_the_first_look_is_whole() -> None:
    speaker = Speaker("openai", 4)
    calls = [speaker.new_call() for _ in range(3)]
    group = speaker.assistant("", calls) + speaker.results([(c, speaker.words(5000)) for c in calls])
    question = speaker.user("go")
    assert _minimum("openai", [question, *speaker.group(), *group]) == [question, *group]


def test_a_running_heartbeat_is_the_newest_question() -> None:
    speaker = Speaker("openai", 5)
    messages = [*speaker.turn(), speaker.user("beat"), *speaker.group()]
    beat = next(i for i, raw in enumerate(messages) if b"beat" in raw)
    assert _minimum("openai", messages, set(range(beat, len(messages)))) == messages[beat:]


def test_a_session_without_a_question_needs_its_last_group() -> None:
    speaker = Speaker("openai", 6)
    group = speaker.group()
    assert _minimum("openai", [*speaker.assistant("hello"), *speaker.group(), *group]) == group
    assert _minimum("openai", speaker.assistant("hello")) == []
