"""`plugins.onEngineFailure = "legacy"`: a failing engine costs its choice, not the turn."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.sidecar_host import Host, history
from tests.e2e.talk import Talk, turns
from tests.engine_gallery import GALLERY, configured, tell

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


@pytest.fixture(params=["inline", "process"])
def moody(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    """A sidecar whose engine raises where the session's name says so, with something to stand in for it."""
    config = tmp_path / "config.toml"
    config.write_text(
        f'[plugins]\nonEngineFailure = "legacy"\n[plugins.load]\npaths = ["{GALLERY}"]\n'
        f'[plugins.entries.moody]\nisolation = "{request.param}"\n',
        encoding="utf-8",
    )
    environment = {"CONTEXT_SIDECAR_CONFIG": str(config)}
    capabilities = ["runtime/compact"]
    with Host(
        tmp_path / "state", environment=environment, engine="moody", hostCapabilities=capabilities
    ) as host:
        yield host


def _stood_in(answer: Any, where: str) -> None:
    assert (
        answer["fallbackFor"]["id"] == "moody" and f"no mood for {where}" in answer["fallbackFor"]["reason"]
    )


@pytest.mark.parametrize("where", ["before", "behind"])
def test_messages_are_stored_once_whatever_their_engine_does(where: str, moody: Host) -> None:
    messages = turns(Talk("openai"), 1, 2)
    for message in messages[:2]:
        _stood_in(moody.call("context/ingest", sessionId=where, message=message), where)
    _stood_in(moody.call("context/ingestBatch", sessionId=where, messages=messages[2:4]), where)
    _stood_in(
        moody.call("context/commitTurn", sessionId=where, messages=messages[4:], advancementKey="k"), where
    )
    assert history(moody, where) == messages
    assert "fallbackFor" not in moody.call("context/ingest", sessionId="good", message=messages[0])


def test_a_bootstrap_takes_everything_over(moody: Host) -> None:
    messages = turns(Talk("openai"), 1, 2)
    taken = moody.call("context/bootstrap", sessionId="before", messages=messages)
    assert taken["importedMessages"] == len(messages)
    _stood_in(taken, "before")
    assert history(moody, "before") == messages


def test_the_host_compacts_in_the_place_of_an_engine_that_fails(moody: Host) -> None:
    tell(moody, "compact")
    id = moody.send("context/compact", sessionId="compact", tokenBudget=600)
    request = moody.wait_asked("runtime/compact")
    assert request["params"]["tokenBudget"] == 600
    moody.answer(request, {"ok": True, "compacted": True})
    answer = moody.wait(id)
    assert answer["ok"] and answer["compacted"]
    _stood_in(answer, "compact")


def test_preflight_is_counted_where_the_engine_cannot_tell(moody: Host) -> None:
    tell(moody, "preflight")
    answer = moody.call("context/preflight", sessionId="preflight", tokenBudget=100)
    assert (answer["fits"], answer["action"]) == (False, "compact") and answer["estimatedTokens"] > 100
    _stood_in(answer, "preflight")
    tell(moody, "good")
    assert moody.call("context/preflight", sessionId="good", tokenBudget=100)["estimatedTokens"] == 7


def test_a_turn_ends_and_maintenance_declines_without_the_engine(moody: Host) -> None:
    messages = turns(Talk("openai"), 1)
    _stood_in(moody.call("context/afterTurn", sessionId="after_turn", messages=messages), "after_turn")
    assert history(moody, "after_turn") == messages
    tell(moody, "maintain")
    answer = moody.call("context/maintain", sessionId="maintain")
    assert not answer["changed"]
    _stood_in(answer, "maintain")


def test_a_compaction_that_nobody_can_do_says_so(tmp_path: Path) -> None:
    with configured(tmp_path, "process", **FALLBACK) as host:
        tell(host, "bad ends_process 1")
        answer = host.call("context/compact", sessionId="bad ends_process 1")
        assert not answer["ok"] and "the host cannot compact" in answer["reason"]
        assert "exit code 7" in answer["fallbackFor"]["reason"]
