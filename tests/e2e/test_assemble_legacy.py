"""`legacy` passes the host's list through, valid or not, over the budget or not."""

from pathlib import Path

import pytest

from tests.e2e.agent_host import AgentHost
from tests.e2e.conversations import DIALECTS, Speaker
from tests.e2e.judge import exact_tokens


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_list_comes_back_as_it_came(dialect: str, tmp_path: Path) -> None:
    speaker = Speaker(dialect, 2)
    messages = [message for _ in range(20) for message in speaker.wild_turn()]
    with AgentHost(tmp_path, dialect=dialect, engine="legacy") as host:
        answer = host.assemble("s", raw=messages, tokenBudget=50, prompt="and now?")
        assert answer.raw == messages
        assert answer.tokens >= exact_tokens(answer.messages) * 0.98 > 50
        assert sum(part["tokens"] for part in answer.result["composition"]) == answer.tokens
        assert "systemPromptAddition" not in answer.result


def test_nothing_is_stored_of_it(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    with AgentHost(tmp_path, engine="legacy") as host:
        answer = host.call("context/ingest", sessionId="s", message={"role": "user", "content": "x"})
        assert answer.pop("messageId")
        assert answer == {"ingested": False, "turnId": "", "reason": "the legacy engine stores nothing"}
        host.assemble("s", raw=speaker.turn())
        assert host.call("session/list")["sessions"] == []


def test_the_epoch_follows_what_the_host_changes(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    messages = [message for _ in range(3) for message in speaker.turn()]
    with AgentHost(tmp_path, engine="legacy") as host:
        first = host.assemble("s", raw=messages)
        longer = host.assemble("s", raw=[*messages, speaker.user("more")])
        shorter = host.assemble("s", raw=messages[2:])
        assert first.epoch == longer.epoch < shorter.epoch
