"""Compaction with and without the host's model, while the session goes on, and when it comes to nothing."""

from pathlib import Path

import pytest

from tests.e2e.agent_host import AgentHost, Answerer, Failure, Json, Refusal
from tests.e2e.conversations import Speaker
from tests.e2e.judge import is_synthetic
from tests.e2e.rules import broken_rules

BUDGET = 3000
ALONE = {"recall": {"share": 0}}
"""Windows and summaries without what is recalled, which has tests of its own."""


def _filled(host: AgentHost, turns: int = 12) -> list[bytes]:
    speaker = Speaker("openai", 6)
    messages = [message for _ in range(turns) for message in speaker.turn(40)]
    host.ingest("s", *messages)
    return messages


def _compacted(host: AgentHost, **params: object) -> Json:
    return host.call("context/compact", sessionId="s", tokenBudget=BUDGET, **params)


def _refusing(params: Json) -> object:
    raise Refusal("no model today")


@pytest.mark.parametrize("engine", ["full", "default", "recall", "sliding-window"])
def test_a_compaction_makes_room_and_stays(engine: str, tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine=engine, config=ALONE) as host:
        messages = _filled(host)
        before = host.assemble("s", tokenBudget=50_000)
        done = _compacted(host)
        assert done["ok"] and done["compacted"]
        after = host.assemble("s", tokenBudget=50_000)
        assert after.epoch > before.epoch
        assert not broken_rules("openai", BUDGET, messages, after)
        assert done["result"]["tokensBefore"] >= before.tokens > BUDGET
        assert after.tokens <= done["result"]["tokensAfter"] <= BUDGET // 2
        kept = [raw for raw in after.raw if raw in messages]
        assert kept == messages[-len(kept) :]
        ids = [m["messageId"] for m in host.call("session/export", sessionId="s")["messages"]]
        assert ids[-len(kept)] == done["result"]["firstKeptMessageId"]
        host.restart()
        assert host.assemble("s", tokenBudget=50_000).raw == after.raw


@pytest.mark.parametrize("engine", ["full", "default", "recall", "sliding-window"])
def test_a_compaction_with_nothing_to_do_is_declined(engine: str, tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine=engine, config=ALONE) as host:
        host.ingest("s", Speaker("openai").user("hi"))
        done = _compacted(host)
        assert done["ok"] and not done["compacted"] and done["reason"]
        assert not _compacted(host, force=True)["compacted"], "a single message cannot be less"


@pytest.mark.parametrize("engine", ["full", "default", "recall", "sliding-window"])
def test_a_forced_compaction_cuts_a_single_giant_turn(engine: str, tmp_path: Path) -> None:
    speaker = Speaker("openai")
    messages = [speaker.user("go"), *(message for _ in range(20) for message in speaker.group(40))]
    with AgentHost(tmp_path, engine=engine, config=ALONE) as host:
        host.ingest("s", *messages)
        before = host.assemble("s", tokenBudget=100_000)
        done = host.call("context/compact", sessionId="s", tokenBudget=100_000, force=True)
        assert done["compacted"], done
        after = host.assemble("s", tokenBudget=100_000)
        assert after.tokens <= before.tokens // 2 and messages[0] in after.raw
        assert not broken_rules("openai", 100_000, messages, after)


@pytest.mark.parametrize(
    ("answer", "by_model"),
    [
        (lambda params: {"text": "They fixed the parser. The certificate was rotated."}, True),
        (lambda params: {"text": ""}, False),
        (lambda params: {"text": "word " * 20_000}, False),
        (lambda params: {"nothing": "of the kind"}, False),
        (lambda params: {"text": 5}, False),
        (_refusing, False),
        (None, False),
    ],
    ids=["good", "empty", "too long", "no text", "garbage", "an error", "never"],
)
def test_the_hosts_model_writes_the_summary_or_the_sidecar_does(
    answer: Answerer | None, by_model: bool, tmp_path: Path
) -> None:
    limits = {"limits": {"hostRequestTimeoutMs": 300}}
    with AgentHost(
        tmp_path, engine="default", capabilities=["runtime/complete"], config={**limits, **ALONE}
    ) as host:
        host.answerers["runtime/complete"] = answer
        messages = _filled(host)
        done = _compacted(host)
        assert done["ok"] and done["compacted"]
        assert ("They fixed the parser" in done["result"]["summary"]) is by_model
        asked = [params for method, params in host.asked if method == "runtime/complete"]
        assert asked and asked[0]["purpose"] == "summary" and asked[0]["maxTokens"] > 0
        after = host.assemble("s", tokenBudget=BUDGET)
        assert not broken_rules("openai", BUDGET, messages, after)
        assert is_synthetic(after.messages[0]) and done["result"]["summary"]


def test_the_session_goes_on_while_the_model_writes(tmp_path: Path) -> None:
    speaker = Speaker("openai", 9)
    with AgentHost(tmp_path, engine="default", capabilities=["runtime/complete"], config=ALONE) as host:
        messages = _filled(host)
        before = host.assemble("s", tokenBudget=50_000)
        later: list[bytes] = []

        def answer(params: Json) -> Json:
            later.extend(speaker.turn(20))
            host.ingest("s", *later)
            between = host.assemble("s", tokenBudget=50_000)
            assert between.epoch == before.epoch and between.raw == messages + later
            return {"text": "The summary."}

        host.answerers["runtime/complete"] = answer
        assert host.call("context/compact", sessionId="s", tokenBudget=50_000, force=True)["compacted"]
        after = host.assemble("s", tokenBudget=50_000)
        assert after.raw[-len(later) :] == later and b"The summary." in after.raw[0]
        assert not broken_rules("openai", 50_000, messages + later, after, before)


def test_a_cancelled_compaction_has_no_effect(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="default", capabilities=["runtime/complete"], config=ALONE) as host:
        host.answerers["runtime/complete"] = None
        _filled(host)
        before = host.assemble("s", tokenBudget=50_000)
        request = host.send("context/compact", sessionId="s", tokenBudget=BUDGET)
        host.wait_for(lambda: bool(host.asked))
        host.cancel(request)
        with pytest.raises(Failure) as cancelled:
            host.result(request)
        assert cancelled.value.code == -32800
        assert "$/cancelRequest" in [method for method, _ in host.notified]
        after = host.assemble("s", tokenBudget=50_000)
        assert (after.epoch, after.raw) == (before.epoch, before.raw)


def test_a_rewind_behind_the_summary_while_it_is_written_wins(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="default", capabilities=["runtime/complete"], config=ALONE) as host:
        messages = _filled(host)
        ids = [m["messageId"] for m in host.call("session/export", sessionId="s")["messages"]]

        def answer(params: Json) -> Json:
            host.call("session/truncate", sessionId="s", afterMessageId=ids[2])
            return {"text": "Speaks of what is not there any more."}

        host.answerers["runtime/complete"] = answer
        done = _compacted(host)
        assert done["ok"] and not done["compacted"]
        assert host.assemble("s", tokenBudget=50_000).raw == messages[:3]


def test_a_rewind_behind_the_summary_brings_the_messages_back(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="default", config=ALONE) as host:
        messages = _filled(host)
        ids = [m["messageId"] for m in host.call("session/export", sessionId="s")["messages"]]
        assert _compacted(host)["compacted"]
        compacted = host.assemble("s", tokenBudget=50_000)
        host.call("session/truncate", sessionId="s", afterMessageId=ids[4])
        after = host.assemble("s", tokenBudget=50_000)
        assert after.raw == messages[:5] and after.epoch > compacted.epoch


def test_a_second_summary_replaces_the_first(tmp_path: Path) -> None:
    speaker = Speaker("openai", 12)
    with AgentHost(tmp_path, engine="default", config=ALONE) as host:
        messages = _filled(host)
        for _ in range(4):
            new = [message for _ in range(6) for message in speaker.turn(40)]
            host.ingest("s", *new)
            messages += new
            assert _compacted(host)["compacted"]
            answer = host.assemble("s", tokenBudget=BUDGET)
            assert [is_synthetic(m) for m in answer.messages].count(True) == 1
            assert answer.raw[0].count(b"[ctx:") == 1 and answer.raw[0].count(b"Summary of the") == 1


def test_preflight_asks_for_a_compaction_only_until_there_was_one(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="default", config=ALONE) as host:
        _filled(host)
        asked = {"sessionId": "s", "tokenBudget": BUDGET}
        assert host.call("context/preflight", **asked)["action"] == "compact"
        _compacted(host)
        told = host.call("context/preflight", **asked)
        assert told["fits"] and told["action"] == "none"
        assert told["estimatedTokens"] == pytest.approx(
            host.assemble("s", tokenBudget=BUDGET).tokens, rel=0.05
        )
        assert not host.call("context/preflight", **asked, pendingTokens=BUDGET)["fits"]
