"""Pruning through the real process: answers stay valid, and their bytes stay from turn to turn."""

import signal
from pathlib import Path

import pytest

from tests.e2e.agent_host import AgentHost, Assembled
from tests.e2e.conversations import DIALECTS, Speaker
from tests.e2e.rules import broken_rules

BUDGET = 3000
RULES = {"recentGroups": 1, "recentShare": 0.1, "trimTokens": 60, "headChars": 100, "tailChars": 50}
PRUNING = {"pruning": {"enabled": True, "startShare": 0, "clearTokens": 40, **RULES}}


def _is_pruned(answer: Assembled) -> bool:
    return any(b"Tool result shortened" in raw or b"Tool result left out" in raw for raw in answer.raw)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("engine", ["full", "default"])
def test_pruned_answers_keep_all_rules(dialect: str, engine: str, tmp_path: Path) -> None:
    speaker = Speaker(dialect, 5)
    history: list[bytes] = []
    before: Assembled | None = None
    pruned = 0
    with AgentHost(tmp_path, dialect=dialect, engine=engine, config=PRUNING) as host:
        for number in range(8):
            for messages in ([speaker.user(speaker.words(20))], speaker.group(150), speaker.group(150)):
                history += messages
                host.ingest("s", *messages)
                answer = host.assemble("s", tokenBudget=BUDGET)
                assert not broken_rules(dialect, BUDGET, history, answer, before)
                pruned += _is_pruned(answer)
                before = answer
            if number % 4 == 3:
                host.restart(signal.SIGKILL)
                again = host.assemble("s", tokenBudget=BUDGET)
                assert (again.epoch, again.raw) == (answer.epoch, answer.raw)
    assert pruned


def test_what_was_pruned_is_explained(tmp_path: Path) -> None:
    speaker = Speaker("openai", 5)
    with AgentHost(tmp_path, engine="full", config=PRUNING) as host:
        host.ingest("s", *(message for _ in range(10) for message in speaker.group(150)))
        host.ingest("s", speaker.user("now"))
        assert _is_pruned(host.assemble("s", tokenBudget=BUDGET))
        decisions = host.call("context/explain", sessionId="s")["decisions"]
        assert any(each["decision"] == "stubbed" for each in decisions)


def test_without_the_setting_results_stay_whole(tmp_path: Path) -> None:
    speaker = Speaker("openai", 5)
    with AgentHost(tmp_path, engine="full") as host:
        host.ingest("s", *(message for _ in range(10) for message in speaker.group(150)))
        host.ingest("s", speaker.user("now"))
        assert not _is_pruned(host.assemble("s", tokenBudget=BUDGET))
