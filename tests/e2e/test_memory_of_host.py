"""Sources that live in the host: what they are asked, and what their faults cost."""

import json
from pathlib import Path

import pytest
from msgspec import Raw

from tests.e2e.agent_host import Failure, Json, Refusal
from tests.e2e.memory_host import CAPABILITY, MemoryHost, appended

FACT = {"id": "f", "content": "A fact.", "priority": 50}


def test_a_source_is_asked_for_the_agent_with_session_and_prompt(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, session="session-of-today") as host:
        host.offer("notes", FACT, points=["session-start"])
        host.offer("facts", FACT)
        host.ask("What now?", sessionKey="main")
        asked = [params for method, params in host.asked if method == CAPABILITY]
        assert {(p["name"], p["injectionPoint"]) for p in asked} == {
            ("notes", "session-start"),
            ("facts", "per-message"),
        }
        for params in asked:
            assert params["agentId"] == "agent-1"
            assert params["sessionId"] == "session-of-today"
            assert params["sessionKey"] == "main"
            assert params["prompt"] == "What now?"


def test_an_agent_without_a_name_is_never_called_by_its_session(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("facts", FACT)
        for session in ("s1", "s2"):
            host.call("context/assemble", sessionId=session, messages=[], prompt="Hi")
        assert [p["agentId"] for m, p in host.asked if m == CAPABILITY] == ["default", "default"]


def test_a_source_that_fails_hangs_or_lies_costs_its_own_fragments(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config={"memory": {"sourceTimeoutMs": 2000}}) as host:

        def answer(params: Json) -> object:
            match params["name"]:
                case "failing":
                    raise Refusal("out of order")
                case "lying":
                    return {"fragments": [{"content": 7}]}
                case _:
                    return {"fragments": [FACT]}

        host.answerers[CAPABILITY] = answer
        for name in ("failing", "lying", "good"):
            host.offer(name)
        assert "A fact." in appended(host.say("one"))
        host.answerers[CAPABILITY] = None
        told = len(host.injected())
        assert appended(host.say("two")) == ""
        assert len(host.injected()) == told, "there was nothing to tell of"


def test_a_size_or_priority_too_large_for_any_float_costs_nothing(tmp_path: Path) -> None:
    sizes = b'{"content": "A", "tokens": %d}, {"content": "B", "priority": %d}' % (10**400, 10**400)
    huge = Raw(b'{"fragments": [%b]}' % sizes)
    with MemoryHost(tmp_path) as host:
        host.offer("facts", FACT)
        host.offer("lying")
        host.answerers[CAPABILITY] = lambda p: huge if p["name"] == "lying" else {"fragments": [FACT]}
        assert "A fact." in appended(host.say("one"))
        told = {f["content"]: (f["priority"], f["included"]) for f in host.injected()[-1]["fragments"]}
        assert told["A"] == (50, False) and told["B"] == (100, True)


def test_a_late_answer_is_cancelled_and_passed_over(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config={"memory": {"sourceTimeoutMs": 200}}) as host:
        host.answerers[CAPABILITY] = None
        host.offer("slow")
        assert appended(host.ask("one")) == ""
        host.until_told("$/cancelRequest")
        cancelled = [params["id"] for method, params in host.notified if method == "$/cancelRequest"]
        assert len(cancelled) == 1


def test_registration_needs_the_capability(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, capabilities=()) as host, pytest.raises(Failure) as refused:
        host.offer("facts")
    assert refused.value.code == 1004


def test_a_source_that_was_withdrawn_is_not_asked(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("facts", FACT)
        assert host.call("memory/unregister", name="facts") == {"unregistered": True}
        assert host.call("memory/unregister", name="facts") == {"unregistered": False}
        assert appended(host.say("one")) == ""
        assert host.asked == []


def test_the_same_name_replaces_a_registration(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("facts", FACT)
        host.offer("facts", FACT, tokenBudget=1)
        made = host.call("memory/compile", agentId="a", injectionPoint="per-message")
        assert [f["included"] for f in made["fragments"]] == [False]


def test_compiling_on_demand_answers_with_all_fragments(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, engine="legacy", capabilities=(CAPABILITY, "runtime/compact")) as host:
        host.offer(
            "facts",
            {"content": "high", "priority": 400},
            {"content": "low", "priority": -3, "tokens": 1200.5},
        )
        made = host.call("memory/compile", agentId="a", injectionPoint="per-message", tokenBudget=1200)
        assert [(f["content"], f["included"], f["priority"]) for f in made["fragments"]] == [
            ("high", True, 100),
            ("low", False, 0),
        ]
        assert made["fragments"][1]["tokens"] == 1201
        assert "high" in made["finalContent"] and "low" not in made["finalContent"]
        [told] = host.injected()
        assert told["finalContent"] == made["finalContent"]
        assert told["fragments"] == made["fragments"]


def test_with_legacy_what_was_compiled_counts_when_the_turn_has_ended(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, engine="legacy", capabilities=(CAPABILITY, "runtime/compact")) as host:
        host.offer("facts", FACT)
        ask = {**host.about(), "injectionPoint": "per-message", "prompt": "one"}
        first = host.call("memory/compile", **ask)
        assert host.call("memory/compile", **ask)["finalContent"] == first["finalContent"] != ""
        host.call("context/afterTurn", **host.about(), messages=[])
        assert host.call("memory/compile", **ask)["finalContent"] == ""
        host.restart()
        host.offer("facts", FACT)
        assert host.call("memory/compile", **ask)["finalContent"] == ""


def test_the_host_is_told_before_the_answer_that_carries_the_content(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("facts", FACT)
        answer = host.ask("one")
        [told] = host.injected()
        assert told["finalContent"] == appended(answer)
        assert told["agentId"] == "agent-1" and told["sessionId"] == "s1"
        assert told["injectionPoint"] == "per-message" and told["synthesized"] is False


def test_explain_names_what_was_injected(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("facts", FACT)
        answer = host.ask("one")
        explained = host.call("context/explain", **host.about(), resultId=answer.id)
        [item] = explained["injected"]
        assert json.dumps(
            [item["pluginName"], item["injectionPoint"], item["content"], item["id"]]
        ) == json.dumps(["facts", "per-message", "A fact.", "f"])
