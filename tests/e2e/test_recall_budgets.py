"""What the recall engine sends stays within its budget, whoever counts."""

import json
import unicodedata
from pathlib import Path

import pytest

from tests.e2e.agent_host import AgentHost, Assembled
from tests.e2e.conversations import Speaker

PROSE = (
    "Considerable improvements throughout international transportation infrastructure demonstrate "
    "extraordinary determination. "
)
HAN = "昨天我们去了博物馆看古代艺术品展览然后在公园散步"
BUDGETS = (600, 1000, 2000, 4000, 8000, 600, 2000)


def by_characters(answer: Assembled) -> int:
    """What a runtime counts that takes four characters, or a wide one, for a token."""
    total = 0
    for message in answer.messages:
        text = message.get("content") or ""
        for call in message.get("tool_calls") or ():
            text += f"\n{call['function']['name']}({call['function']['arguments']})"
        wide = sum(unicodedata.east_asian_width(character) == "W" for character in text)
        total += 4 + wide + -(-(len(text) - wide) // 4)
    return total


@pytest.mark.parametrize("sentence", [PROSE, HAN])
def test_a_host_that_counts_characters_finds_no_more_than_the_budget(tmp_path: Path, sentence: str) -> None:
    with AgentHost(tmp_path, engine="recall") as host:
        speaker = Speaker("openai")
        for turn in range(60):
            asked = f"{turn}. {sentence * (1 + turn % 3)}"
            host.ingest("s", speaker.user(asked), *speaker.assistant(f"{sentence * 2} {turn} heron"))
        for budget in BUDGETS:
            for prompt in (f"what about the heron? {sentence}", "and the heron of turn 12?"):
                assert by_characters(host.assemble("s", tokenBudget=budget, prompt=prompt)) <= budget


def test_a_window_that_was_cut_leaves_a_quarter_of_a_small_budget_for_later(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="recall") as host:
        speaker = Speaker("openai")
        for turn in range(60):
            host.ingest("s", speaker.user(f"{turn}. {PROSE}"), *speaker.assistant(f"{turn} heron {PROSE}"))
        for budget in (2000, 1000):
            answer = host.assemble("s", tokenBudget=budget, prompt=f"what about the heron? {PROSE}")
            assert 0.4 * budget < by_characters(answer) < 0.8 * budget
            assert answer.tokens <= 0.75 * budget


def test_what_was_recalled_for_a_larger_budget_leaves_room_in_a_smaller_one(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="recall") as host:
        speaker = Speaker("openai")
        host.ingest("s", speaker.user("The wifi password of the cabin is heron-42."))
        for _ in range(40):
            host.ingest("s", *speaker.turn())
        host.ingest("s", speaker.user("weather " * 900), *speaker.assistant("sunshine"))

        def recalled(budget: int) -> str:
            answer = host.assemble("s", tokenBudget=budget, prompt="What was the wifi password of the cabin?")
            return json.dumps([m["content"] for m in answer.messages if "[ctx:recall" in str(m["content"])])

        assert "heron-42" in recalled(2000)
        assert "heron-42" in recalled(8000)
        assert "heron-42" in recalled(2000)
