"""Memory of the session's start stays as it is while the window is evicted in blocks."""

from pathlib import Path

import msgspec

from tests.e2e.memory_host import CAPABILITY, MemoryHost, addition
from tests.e2e.rules import broken_rules

BUDGET = 3000


def test_session_start_memory_breaks_no_prefix_between_compactions(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, engine="sliding-window") as host:
        host.offer("notes", points=["session-start"])
        asked: list[str] = []

        def another_note(params: object) -> object:
            asked.append(f"Note number {len(asked)}.")
            return {"fragments": [{"content": asked[-1]}]}

        host.answerers[CAPABILITY] = another_note
        answers = []
        for number in range(24):
            prompt = f"Question {number}. " * 40
            answers.append(host.say(prompt, "A longer answer. " * 40, tokenBudget=BUDGET))
            before = answers[-2] if number else None
            sources = [msgspec.json.encode(message) for message in host.transcript]
            assert not broken_rules("openai", BUDGET, sources, answers[-1], before)
        assert len(asked) == 1 and {addition(answer) for answer in answers} == {addition(answers[0])}
        epochs = [answer.epoch for answer in answers]
        assert 2 <= len(set(epochs)) <= 8, "blocks, not turns"
        host.call("context/compact", **host.about(), tokenBudget=BUDGET, force=True)
        assert "Note number 1." in addition(host.say("And now?", tokenBudget=BUDGET))
