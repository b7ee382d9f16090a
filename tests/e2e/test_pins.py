"""Pins: what is pinned is in every answer, whichever engine makes it, and valid for every provider."""

from pathlib import Path

import pytest

from tests.e2e.agent_host import AgentHost, Failure, Json
from tests.e2e.conversations import DIALECTS, Speaker
from tests.e2e.judge import problems
from tests.e2e.rules import broken_rules

BUDGET = 3000
ENGINES = ["full", "default", "terse"]


def _filled(host: AgentHost, dialect: str = "openai", turns: int = 14) -> tuple[list[bytes], list[str]]:
    speaker = Speaker(dialect, 6)
    messages = [message for _ in range(turns) for message in speaker.turn(40)]
    return messages, host.ingest("s", *messages)


def _pin(host: AgentHost, **params: object) -> str:
    return host.call("session/pin", sessionId="s", **params)["pinId"]


def _pins(host: AgentHost, session: str = "s") -> list[Json]:
    return host.call("session/pins", sessionId=session)["pins"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pinned_message_survives_every_compaction_and_a_restart(engine: str, tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine=engine) as host:
        messages, ids = _filled(host)
        _pin(host, messageId=ids[0])
        for _ in range(2):
            host.call("context/compact", sessionId="s", tokenBudget=BUDGET, force=True)
            answer = host.assemble("s", tokenBudget=BUDGET)
            assert messages[0] in answer.raw and len(answer.raw) < len(messages)
            assert not broken_rules("openai", BUDGET, messages, answer)
        host.restart()
        assert host.assemble("s", tokenBudget=BUDGET).raw == answer.raw


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_pinned_is_valid_for_the_provider(dialect: str, tmp_path: Path) -> None:
    with AgentHost(tmp_path, dialect=dialect) as host:
        messages, ids = _filled(host, dialect, 30)
        for position in range(len(messages)):
            pin = _pin(host, messageId=ids[position])
            answer = host.assemble("s", tokenBudget=BUDGET)
            assert messages[position] in answer.raw
            assert not problems(dialect, answer.messages)
            assert answer.tokens <= BUDGET
            host.call("session/unpin", sessionId="s", pinId=pin)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pinned_text_is_in_every_answer(engine: str, tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine=engine) as host:
        messages, _ = _filled(host)
        _pin(host, text="Never deploy on a Friday.", note="learnt the hard way")
        answer = host.assemble("s", tokenBudget=BUDGET)
        assert sum(b"Never deploy on a Friday." in raw for raw in answer.raw) == 1
        assert not broken_rules("openai", BUDGET, messages, answer)
        again = host.assemble("s", raw=answer.raw, tokenBudget=BUDGET)
        assert again.raw == answer.raw, "handed back, it is not there twice"


def test_pins_are_listed_oldest_first_and_taken_off(tmp_path: Path) -> None:
    with AgentHost(tmp_path) as host:
        messages, ids = _filled(host)
        first = _pin(host, messageId=ids[1], note="why")
        second = _pin(host, text="A rule.")
        assert _pin(host, text="A rule.") == second, "the same thing is pinned once"
        listed = _pins(host)
        assert [pin["pinId"] for pin in listed] == [first, second]
        assert listed[0]["messageId"] == ids[1] and listed[0]["note"] == "why"
        assert listed[1]["text"] == "A rule." and listed[1]["createdAt"].endswith("Z")
        assert host.call("session/unpin", sessionId="s", pinId=first) == {"unpinned": True}
        assert host.call("session/unpin", sessionId="s", pinId=first) == {"unpinned": False}
        assert messages[1] not in host.assemble("s", tokenBudget=BUDGET).raw
        reasons = [params["reason"] for method, params in host.notified if method == "session/changed"]
        assert reasons == ["pinned", "pinned", "unpinned"]


def test_a_pin_needs_something_that_is_there(tmp_path: Path) -> None:
    with AgentHost(tmp_path) as host:
        _filled(host, turns=1)
        for wrong in ({"messageId": "nobody"}, {"text": " "}, {}, {"messageId": "a", "text": "b"}):
            with pytest.raises(Failure) as refused:
                _pin(host, **wrong)
            assert refused.value.code == -32602
        with pytest.raises(Failure) as missing:
            host.call("session/pins", sessionId="nobody")
        assert missing.value.code == 1003


def test_pins_beyond_the_budget_go_newest_first_and_explain_says_so(tmp_path: Path) -> None:
    with AgentHost(tmp_path) as host:
        messages, ids = _filled(host, turns=40)
        for message_id in ids[:60]:
            _pin(host, messageId=message_id)
        answer = host.assemble("s", tokenBudget=1500)
        assert not broken_rules("openai", 1500, messages, answer)
        assert messages[0] in answer.raw
        decisions = host.call("context/explain", sessionId="s", resultId=answer.id)["decisions"]
        verdicts = {d["messageId"]: (d["decision"], d["reason"], d.get("by")) for d in decisions}
        assert verdicts[ids[0]][0] == "pinned" and str(verdicts[ids[0]][2]).startswith("pin-")
        assert any("pin does not fit" in reason for _, reason, _ in verdicts.values())


def test_a_fork_has_the_pins_and_goes_its_own_way(tmp_path: Path) -> None:
    with AgentHost(tmp_path) as host:
        messages, ids = _filled(host)
        pin = _pin(host, messageId=ids[0])
        host.call("session/fork", sessionId="s", newSessionId="child")
        host.call("session/unpin", sessionId="s", pinId=pin)
        assert not _pins(host) and len(_pins(host, "child")) == 1
        assert messages[0] in host.assemble("child", tokenBudget=BUDGET).raw


def test_a_pin_of_a_message_that_was_removed_does_no_harm(tmp_path: Path) -> None:
    with AgentHost(tmp_path) as host:
        messages, ids = _filled(host)
        _pin(host, messageId=ids[20])
        host.call("session/truncate", sessionId="s", afterMessageId=ids[5])
        assert host.assemble("s", tokenBudget=BUDGET).raw == messages[:6]


def test_a_session_without_summaries_lists_none(tmp_path: Path) -> None:
    with AgentHost(tmp_path) as host:
        _filled(host, turns=1)
        assert host.call("session/summaries", sessionId="s") == {"summaries": []}
        with pytest.raises(Failure) as missing:
            host.call("session/summaries", sessionId="nobody")
        assert missing.value.code == 1003
