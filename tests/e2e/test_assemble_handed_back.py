"""Hosts hand an engine's earlier answer back: it is recognised, also with the host's decorations on it."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.e2e.agent_host import AgentHost, Assembled
from tests.e2e.conversations import DIALECTS, Speaker
from tests.e2e.judge import is_synthetic
from tests.e2e.rules import broken_rules

Decorate = Callable[[str], str]

DECORATIONS: dict[str, Decorate] = {
    "as it was": lambda text: text,
    "with a time in front": lambda text: f"[Thu 2026-01-15 10:30 GMT+1] {text}",
    "with a runtime block": lambda text: (
        f"{text}\n\nRuntime: agent=main | host=box | model=x/y\nReasoning: off"
    ),
    "with folded white space": lambda text: " ".join(text.split()),
}


def _compacted(host: AgentHost, dialect: str, turns: int = 14) -> tuple[Speaker, list[bytes], Assembled]:
    speaker = Speaker(dialect, 8)
    messages = [message for _ in range(turns) for message in speaker.turn(40)]
    messages.append(speaker.user("and now the next step"))
    host.ingest("s", *messages)
    answer = host.assemble("s", tokenBudget=2000)
    assert len(_summaries(answer)) == 1, "there is a summary"
    return speaker, messages, answer


def _summaries(answer: Assembled) -> list[bytes]:
    return [raw for raw in answer.raw if b"[ctx:summary" in raw]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_own_answer_is_a_fixed_point(dialect: str, tmp_path: Path) -> None:
    with AgentHost(tmp_path, dialect=dialect, engine="default") as host:
        _, _, answer = _compacted(host, dialect)
        for _ in range(3):
            again = host.assemble("s", raw=answer.raw, tokenBudget=2000)
            assert again.raw == answer.raw and again.epoch == answer.epoch


@pytest.mark.parametrize("decorate", DECORATIONS.values(), ids=DECORATIONS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_decorated_summary_is_neither_nested_nor_doubled(
    dialect: str, decorate: Decorate, tmp_path: Path
) -> None:
    with AgentHost(tmp_path, dialect=dialect, engine="default") as host:
        speaker, messages, answer = _compacted(host, dialect)
        count = host.call("session/get", sessionId="s")["messageCount"]
        history = list(messages)
        held = list(answer.raw)
        for _ in range(3):
            held = [
                _decorated(raw, decorate) if is_synthetic(msgspec.json.decode(raw)) else raw for raw in held
            ]
            new = speaker.group(20)
            held, history = held + new, history + new
            answer = host.assemble("s", raw=held, tokenBudget=2000)
            assert not broken_rules(dialect, 2000, history, answer)
            (summary,) = _summaries(answer)
            assert summary.count(b"[ctx:summary") == 1
            held = list(answer.raw)
        assert host.call("session/get", sessionId="s")["messageCount"] == count


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stub_that_comes_back_stays_the_stub_of_its_message(dialect: str, tmp_path: Path) -> None:
    speaker = Speaker(dialect)
    call = speaker.new_call()
    result = speaker.results([(call, speaker.words(4000))])
    stored = [speaker.user("read it"), *speaker.assistant("", [call]), *result]
    with AgentHost(tmp_path, dialect=dialect) as host:
        host.ingest("s", *stored)
        answer = host.assemble("s", tokenBudget=1000)
        more = speaker.group(20)
        after = host.assemble("s", raw=[*answer.raw, *more], tokenBudget=1000)
        assert after.raw == [*answer.raw, *more] and after.epoch == answer.epoch


@pytest.mark.parametrize("way", ["context/afterTurn", "context/commitTurn", "context/ingest"])
@pytest.mark.parametrize("budget", [1000, 100_000], ids=["stub", "original"])
def test_a_result_that_the_host_has_merged_into_an_earlier_message_is_not_lost(
    budget: int, way: str, tmp_path: Path
) -> None:
    speaker = Speaker("anthropic")
    first, second = speaker.new_call(), speaker.new_call()
    (earlier,) = speaker.results([(first, speaker.words(4000))])
    (later,) = speaker.results([(second, "the second result")])
    with AgentHost(tmp_path, dialect="anthropic") as host:
        host.ingest("s", speaker.user("read both"), *speaker.assistant("", [first, second]), earlier)
        *before, held = host.assemble("s", tokenBudget=budget).raw
        assert (held == earlier) is (budget > 1000)
        blocks = [block for raw in (held, later) for block in msgspec.json.decode(raw)["content"]]
        merged = msgspec.json.encode({"role": "user", "content": blocks})
        answer = host.assemble("s", raw=[*before, merged], tokenBudget=100_000)
        assert answer.raw[-1] == merged
        turn = list(map(msgspec.Raw, [*before, merged]))
        if way == "context/afterTurn":
            host.call(way, sessionId="s", messages=turn, prePromptMessageCount=0)
        elif way == "context/commitTurn":
            host.call(way, sessionId="s", messages=turn, advancementKey="k")
        else:
            host.ingest("s", merged)
        told = host.assemble("s", tokenBudget=100_000).raw
        assert told == [*before, merged]
        again = host.assemble("s", raw=told, tokenBudget=100_000)
        assert again.raw == told


def _decorated(raw: bytes, decorate: Decorate) -> bytes:
    """The message with its text changed as a host changes it."""
    message = msgspec.json.decode(raw)
    if isinstance(message["content"], str):
        message["content"] = decorate(message["content"])
    else:
        message["content"][0]["text"] = decorate(message["content"][0]["text"])
    return msgspec.json.encode(message)
