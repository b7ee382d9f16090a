"""The texts that get vectors."""

import json

import pytest

from sidecar.messages.dialects import dialect
from sidecar.recall.passages import passages
from sidecar.semantic.index import MOST_PARTS, is_understood, spoken_passages
from sidecar.store.stored import StoredMessage


def message(
    position: int, role: str, content: str, *, heartbeat: bool = False, **members: str
) -> StoredMessage:
    body = json.dumps({"role": role, "content": content, **members}).encode()
    return StoredMessage(position, f"m{position}", 1, "t1", role, 0, heartbeat, body)


@pytest.mark.parametrize(
    "text",
    ["Where did we put the spare key?", "El café está junto a la plaza mayor", "retry_limit = 5 # three"],
)
def test_latin_letters_are_understood(text: str) -> None:
    assert is_understood(text)


@pytest.mark.parametrize(
    "text",
    [
        "我们上次说的退款政策是什么来着？",
        "Где мы оставили запасной ключ",
        "その鍵はどこに置きましたか？",
        "ok",
        "",
    ],
)
def test_other_scripts_and_next_to_nothing_are_left_to_the_words(text: str) -> None:
    assert not is_understood(text)


def test_who_said_it_and_where_is_known() -> None:
    said = [
        message(11, "user", "Where did we put the spare key?"),
        message(12, "assistant", "It hangs behind the pantry door."),
        message(13, "tool", "The door was opened at noon.", tool_call_id="c"),
        message(14, "user", "Thank you, I have found it there."),
    ]
    found = list(spoken_passages(dialect("openai"), said, 11))
    assert [(each.offset, each.user) for each in found] == [(0, 1), (1, 2), (3, 1)]


def test_system_messages_heartbeats_and_results_say_nothing() -> None:
    said = [
        message(1, "system", "You help with the household."),
        message(2, "user", "Is anything to be done now?", heartbeat=True),
        message(3, "tool", "The door was opened at noon.", tool_call_id="c"),
    ]
    assert list(spoken_passages(dialect("openai"), said, 1)) == []


def test_the_first_passages_of_a_long_message_are_taken() -> None:
    text = " ".join(f"Sentence number {n} is about item {n}." for n in range(400))
    found = list(spoken_passages(dialect("openai"), [message(1, "user", text)], 1))
    assert [each.text for each in found] == list(passages(text)[:MOST_PARTS])


def test_the_same_text_has_the_same_key() -> None:
    said = [message(n, "user", "Where did we put the spare key?") for n in (1, 2)]
    first, second = spoken_passages(dialect("openai"), said, 1)
    assert first.key == second.key
