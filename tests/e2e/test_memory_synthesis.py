"""Fragments merged by a model: what it is asked, and that nothing depends on its answer."""

from pathlib import Path

import pytest

from tests.e2e.agent_host import Answerer, Json, Refusal
from tests.e2e.memory_host import CAPABILITY, MemoryHost
from tests.model_server import ModelServer

FREE = {"content": "The user likes tea.", "priority": 80}
VERBATIM = {"content": "License key: ABC-123", "priority": 90, "synthesize": False}
CONFIG = {"memory": {"enableSynthesis": True, "synthesisModel": "small-one"}}


def start(
    state: Path, config: Json = CONFIG, capabilities: tuple[str, ...] = ("runtime/complete",)
) -> MemoryHost:
    return MemoryHost(state, config=config, capabilities=(CAPABILITY, *capabilities))


def compiled(host: MemoryHost) -> Json:
    host.offer("facts", FREE, VERBATIM)
    return host.call(
        "memory/compile", agentId="a", injectionPoint="per-message", prompt="Tea?", tokenBudget=1000
    )


def test_a_model_merges_what_may_be_merged_and_never_sees_the_rest(tmp_path: Path) -> None:
    with start(tmp_path) as host:
        host.answerers["runtime/complete"] = lambda params: {"text": "Tea it is."}
        made = compiled(host)
        [asked] = [params for method, params in host.asked if method == "runtime/complete"]
        assert made["synthesized"] is True
        assert "Tea it is." in made["finalContent"] and FREE["content"] not in made["finalContent"]
        assert VERBATIM["content"] in made["finalContent"]
        assert "ABC-123" not in str(asked) and str(FREE["content"]) in str(asked)
        assert asked["purpose"] == "synthesis" and asked["maxTokens"] == 600 and asked["model"] == "small-one"
        assert host.injected()[-1]["synthesized"] is True


def failing(params: Json) -> object:
    raise Refusal("no model today")


@pytest.mark.parametrize(
    "answerer",
    [
        failing,
        None,
        lambda params: {"text": "  "},
        lambda params: {"text": "word " * 2000},
        lambda params: {},
    ],
    ids=["error", "hang", "empty", "too long", "nonsense"],
)
def test_without_a_good_answer_fragments_are_joined_as_they_are(
    tmp_path: Path, answerer: Answerer | None
) -> None:
    with start(tmp_path, {**CONFIG, "limits": {"hostRequestTimeoutMs": 300}}) as host:
        host.answerers["runtime/complete"] = answerer
        made = compiled(host)
        assert made["synthesized"] is False
        assert (
            str(FREE["content"]) in made["finalContent"] and str(VERBATIM["content"]) in made["finalContent"]
        )


def test_a_host_without_a_model_is_not_asked(tmp_path: Path) -> None:
    with start(tmp_path, capabilities=()) as host:
        assert compiled(host)["synthesized"] is False
        assert {method for method, _ in host.asked} == {CAPABILITY}


def test_synthesis_is_off_unless_it_is_switched_on(tmp_path: Path) -> None:
    with start(tmp_path, {}) as host:
        assert compiled(host)["synthesized"] is False


def test_a_model_that_keeps_failing_is_left_alone(tmp_path: Path) -> None:
    with start(tmp_path) as host:
        host.answerers["runtime/complete"] = failing
        for _ in range(6):
            assert compiled(host)["synthesized"] is False
        assert sum(method == "runtime/complete" for method, _ in host.asked) == 3


def test_a_configured_model_merges_fragments_where_the_host_has_none(tmp_path: Path) -> None:
    with ModelServer(lambda request, number: "Tea it is.") as server:
        model = {"baseUrl": server.url, "name": "scripted", "retries": 0}
        with start(tmp_path, {**CONFIG, "model": model}, capabilities=()) as host:
            made = compiled(host)
    assert made["synthesized"] is True
    assert "Tea it is." in made["finalContent"] and VERBATIM["content"] in made["finalContent"]
    assert "ABC-123" not in str(server.requests) and len(server.requests) == 1
    assert server.requests[0]["max_tokens"] == 600
