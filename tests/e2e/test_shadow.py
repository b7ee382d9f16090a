"""A shadow is asked what the engine was asked; the host sees nothing of it but figures."""

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.sidecar_host import COMMAND, LIMIT_S, Host, history
from tests.e2e.talk import Talk, turns
from tests.engine_gallery import configured, tell


def shadowed(folder: Path, engine: str, primary: str = "full", **shadow: Any) -> Host:
    """A host whose answers are those of `primary`, while `engine` is asked the same."""
    plugins = {"shadow": {"engine": engine, **shadow}}
    return configured(folder, "process", engine=primary, config={"plugins": plugins})


def report(host: Host, asked: int) -> dict[str, Any]:
    """The figures, once so many requests have come to something; a shadow works while nothing is asked."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        found = host.call("engine/doctor")
        known = found["shadow"]
        done = known["compared"] + known["outdated"] + known["dropped"] + known["shadow"]["failures"]
        if done >= asked and not known["waiting"]:
            return found
        assert time.monotonic() < deadline, f"the shadow was not asked: {known}"
        threading.Event().wait(0.1)


def said(host: Host, session: str, engine_budget: int = 600) -> Any:
    answer = host.call("context/assemble", sessionId=session, tokenBudget=engine_budget)
    return {name: answer[name] for name in ("messages", "contextEpoch", "estimatedTokens", "composition")}


def test_two_engines_are_compared_on_the_same_requests(tmp_path: Path) -> None:
    with shadowed(tmp_path, "default", "full") as host:
        for number in range(1, 6):
            tell(host, "s", [number])
            said(host, "s", 100_000)
            known = report(host, number)["shadow"]
    assert (known["compared"], known["dropped"], known["outdated"]) == (5, 0, 0)
    assert (known["primary"]["engine"], known["shadow"]["engine"]) == ("full", "default")
    for side in (known["primary"], known["shadow"]):
        assert (side["answers"], side["failures"], side["invalid"]) == (5, 0, 0)
        assert side["meanTokens"] > 0 and side["prefixKept"] == 1
    assert known["coverage"] == 1 and "problem" not in known


def test_an_engine_that_sends_less_covers_less(tmp_path: Path) -> None:
    with shadowed(tmp_path, "terse") as host:
        for number in range(1, 12):
            tell(host, "s", [number])
        said(host, "s", 100_000)
        known = report(host, 1)["shadow"]
    assert known["shadow"]["meanTokens"] < known["primary"]["meanTokens"] and 0 < known["coverage"] < 1


@pytest.mark.parametrize("engine", ["default", "lossless", "recall", "gallery"])
def test_a_shadow_changes_neither_answers_nor_what_is_stored(engine: str, tmp_path: Path) -> None:
    seen: list[Any] = []
    for shadow in (engine, None):
        folder = tmp_path / str(shadow)
        folder.mkdir()
        plugins = {"shadow": {"engine": shadow}} if shadow else {}
        with configured(folder, "process", engine="default", config={"plugins": plugins}) as host:
            answers: list[Any] = []
            for number in range(1, 10):
                messages = turns(Talk("openai"), number)
                host.call("context/afterTurn", sessionId="s", messages=messages, usage={"prompt_tokens": 300})
                answers.append(said(host, "s"))
                if number == 6:
                    answers.append(host.call("context/compact", sessionId="s", tokenBudget=500)["compacted"])
                if shadow:
                    report(host, number)
            notes = [n["params"]["reason"] for n in host.notifications if n["method"] == "session/changed"]
            stored = history(host, "s")
            summaries = len(host.call("session/summaries", sessionId="s")["summaries"])
            seen.append([[_told(answer) for answer in answers], stored, summaries, notes])
    for here, there in zip(*seen, strict=True):
        assert here == there


def _told(answer: Any) -> Any:
    """An answer without what the times in texts of ours, and their tokens, change."""
    if not isinstance(answer, dict):
        return answer
    texts = [message["content"] for message in answer["messages"]]
    parts = [part for part in answer["composition"] if part["kind"] not in ("summary", "recall")]
    told = [text if text and not text.startswith("[ctx:") else "ours" for text in texts]
    return [told, parts, answer["contextEpoch"]]


@pytest.mark.parametrize("kind", ["raises", "none", "foreign", "hangs", "endless_text"])
def test_a_shadow_that_fails_is_told_and_costs_no_answer(kind: str, tmp_path: Path) -> None:
    session = f"bad {kind} 1"
    with shadowed(tmp_path, "gallery", timeoutMs=1000) as host:
        tell(host, session)
        before = said(host, session)
        found = report(host, 1)
        assert said(host, session) == before
    known = found["shadow"]
    assert known["shadow"]["failures"] == 1 and known["compared"] == 0 and known["problem"]
    check = next(check for check in found["checks"] if check["name"] == "shadow")
    assert not check["ok"] and check["fix"]


def test_a_shadow_that_ends_its_process_is_started_again(tmp_path: Path) -> None:
    with shadowed(tmp_path, "gallery") as host:
        tell(host, "bad ends_process 1", range(1, 40))
        assert host.call("context/compact", sessionId="bad ends_process 1", tokenBudget=500)["compacted"]
        assert report(host, 1)["shadow"]["shadow"]["failures"] == 1
        tell(host, "good")
        said(host, "good")
        assert report(host, 2)["shadow"]["compared"] == 1


def test_what_a_slow_shadow_cannot_take_is_dropped_and_counted(tmp_path: Path) -> None:
    with shadowed(tmp_path, "gallery", timeoutMs=60_000, queue=2) as host:
        tell(host, "bad hangs 1")
        for _ in range(10):
            said(host, "bad hangs 1")
        known = host.call("engine/doctor")["shadow"]
        assert known["dropped"] >= 7 and known["waiting"] <= 3
        host.stop()


def test_a_shadow_that_fails_each_time_is_left_alone(tmp_path: Path) -> None:
    with shadowed(tmp_path, "gallery") as host:
        for number in range(8):
            tell(host, f"bad raises {number}")
            said(host, f"bad raises {number}")
            known = report(host, number + 1)["shadow"]
    assert (known["shadow"]["failures"], known["dropped"]) == (5, 3)


@pytest.mark.parametrize("engine", ["nobody", "exits-at-import"])
def test_a_shadow_that_is_not_there_is_told_by_the_doctor_alone(engine: str, tmp_path: Path) -> None:
    with shadowed(tmp_path, engine) as host:
        tell(host, "s")
        said(host, "s")
        found = report(host, 1)
    check = next(check for check in found["checks"] if check["name"] == "shadow")
    assert not check["ok"] and engine in check["message"]


def test_the_doctor_compares_both_on_its_own_turn(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[plugins.shadow]\nengine = "terse"\n', encoding="utf-8")
    program = (COMMAND[0], "doctor", "--config", str(config), "--state-dir", str(tmp_path / "state"))
    told = json.loads(
        subprocess.run((*program, "--json"), capture_output=True, timeout=60, check=True).stdout
    )
    assert told["shadow"]["compared"] == 1 and told["shadow"]["coverage"] == 1
    shown = subprocess.run(program, capture_output=True, timeout=60, check=True, text=True).stdout
    assert "prefix kept" in shown and "terse" in shown
