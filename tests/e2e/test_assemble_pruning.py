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
    with AgentHost(tmp_path, engine="full", config={**PRUNING, "recall": {"share": 0}}) as host:
        host.ingest("s", *(message for _ in range(10) for message in speaker.group(150)))
        host.ingest("s", speaker.user("now"))
        assert _is_pruned(host.assemble("s", tokenBudget=BUDGET))
        decisions = host.call("context/explain", sessionId="s")["decisions"]
        assert any(each["decision"] == "stubbed" for each in decisions)


def _told_large_results(host: AgentHost, results: int = 10) -> list[bytes]:
    speaker = Speaker("openai", 5)
    messages = [speaker.user("look")]
    for _ in range(results):
        call = speaker.new_call()
        messages += [*speaker.assistant("", [call]), *speaker.results([(call, speaker.words(1200))])]
    messages.append(speaker.user("now"))
    host.ingest("s", *messages)
    return messages


@pytest.mark.parametrize("engine", ["full", "default", "lossless", "terse", "sliding-window"])
def test_old_results_give_way_where_a_session_does_not_fit(engine: str, tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine=engine) as host:
        _told_large_results(host)
        assert _is_pruned(host.assemble("s", tokenBudget=8000))


@pytest.mark.parametrize("engine", ["full", "default", "lossless", "terse", "sliding-window", "recall"])
def test_a_session_that_fits_is_sent_whole(engine: str, tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine=engine) as host:
        messages = _told_large_results(host, results=4)
        assert host.assemble("s", tokenBudget=9000).raw[-len(messages) :] == messages


@pytest.mark.parametrize(
    ("engine", "enabled"), [("full", False), ("default", False), ("lossless", False), ("recall", True)]
)
def test_results_stay_whole_where_pruning_is_off_or_left_to_the_engine(
    engine: str, enabled: bool, tmp_path: Path
) -> None:
    with AgentHost(tmp_path, engine=engine, config={"pruning": {"enabled": enabled}}) as host:
        _told_large_results(host)
        assert not _is_pruned(host.assemble("s", tokenBudget=8000))


def test_another_engine_begins_with_whole_results(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="sliding-window") as host:
        messages = _told_large_results(host)
        assert _is_pruned(host.assemble("s", tokenBudget=8000))
        host.call("session/configure", sessionId="s", engine="full")
        assert host.assemble("s", tokenBudget=50_000).raw == messages


def test_a_result_that_is_pinned_after_it_was_pruned_comes_back_whole(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="full") as host:
        messages = _told_large_results(host)
        before = host.assemble("s", tokenBudget=9000)
        position = next(
            i for i, raw in enumerate(messages) if b'"role": "tool"' in raw and raw not in before.raw
        )
        exported = host.call("session/export", sessionId="s")["messages"]
        host.call("session/pin", sessionId="s", messageId=exported[position]["messageId"])
        pinned = host.assemble("s", tokenBudget=9000)
        assert messages[position] in pinned.raw and pinned.epoch > before.epoch
        assert host.assemble("s", tokenBudget=9000).raw == pinned.raw
