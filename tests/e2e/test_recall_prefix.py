"""In a loop of answers and turns, those of `recall` go on from each other at small budgets too."""

from pathlib import Path
from random import Random

import pytest
from msgspec import Raw

from tests.e2e.agent_host import AgentHost
from tests.e2e.conversations import Speaker

TOPICS = ("the parser token buffer", "the staging certificate", "the deploy cluster")
TURNS = 60


@pytest.mark.parametrize(("words", "least"), [(30, 0.9), (140, 0.75)], ids=["short turns", "long turns"])
def test_most_answers_go_on_from_the_one_before(words: int, least: float, tmp_path: Path) -> None:
    speaker, random = Speaker("openai", 1), Random(2)
    history: list[bytes] = []
    before: list[bytes] = []
    extended = asked = 0
    with AgentHost(tmp_path, engine="recall") as host:
        for number in range(30 + TURNS):
            question = speaker.user(
                f"{number} what about {random.choice(TOPICS)}? {speaker.words(words // 2)}"
            )
            turn = [question, *speaker.assistant(speaker.words(words))]
            answer = host.assemble("s", raw=[*history, question], tokenBudget=4000).raw
            if number >= 30:
                asked += 1
                extended += answer[: len(before)] == before
            before, history = answer, [*history, *turn]
            host.call(
                "context/commitTurn", sessionId="s", advancementKey=str(number), messages=list(map(Raw, turn))
            )
    assert extended >= least * asked, f"{extended} of {asked}"
