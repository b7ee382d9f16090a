"""`plugins.onEngineFailure = "legacy"`: a failing engine costs its choice, not the turn."""

from pathlib import Path

import pytest

from tests.e2e.talk import Talk, turns
from tests.engine_gallery import configured, tell

FALLBACK = {"config": {"plugins": {"onEngineFailure": "legacy"}}}


@pytest.mark.parametrize("isolation", ["inline", "process"])
def test_the_hosts_own_list_comes_back_and_the_answer_says_why(isolation: str, tmp_path: Path) -> None:
    messages = turns(Talk("openai"), 1, 2)
    with configured(tmp_path, isolation, **FALLBACK) as host:
        answer = host.call("context/assemble", sessionId="bad raises 1", messages=messages)
        assert answer["messages"] == messages
        assert answer["fallbackFor"]["id"] == "gallery"
        assert "ValueError: no such thing" in answer["fallbackFor"]["reason"]
        assert "fallbackFor" not in host.call("context/assemble", sessionId="good", messages=messages)


def test_without_a_list_the_newest_stored_messages_that_fit_are_sent(tmp_path: Path) -> None:
    with configured(tmp_path, "inline", **FALLBACK) as host:
        tell(host, "bad none 1", range(1, 40))
        answer = host.call("context/assemble", sessionId="bad none 1", tokenBudget=600)
        assert answer["estimatedTokens"] <= 600 and answer["fallbackFor"]["id"] == "gallery"
        assert answer["messages"][-1]["content"] == "answer 39: it is 78."


def test_a_session_in_quarantine_is_answered_and_the_doctor_tells(tmp_path: Path) -> None:
    with configured(tmp_path, "inline", **FALLBACK) as host:
        tell(host, "bad raises 1")
        for _ in range(6):
            answer = host.call("context/assemble", sessionId="bad raises 1", tokenBudget=600)
        assert "in quarantine" in answer["fallbackFor"]["reason"]
        report = host.call("engine/doctor")
        health = next(check for check in report["checks"] if check["name"] == "health")
        assert not report["ok"] and not health["ok"]
        assert "bad raises 1" in health["message"] and "ValueError" in health["message"] and health["fix"]
        counted = next(check for check in report["checks"] if check["name"] == "context/assemble")
        assert "6 calls, 6 failed" in counted["message"]


def test_without_the_setting_the_call_fails(tmp_path: Path) -> None:
    with configured(tmp_path, "inline") as host:
        messages = turns(Talk("openai"), 1)
        refused = host.refusal("context/assemble", sessionId="bad raises 1", messages=messages)
        assert refused.code == 1005
