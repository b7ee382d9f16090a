"""`context/explain` says of every message what became of it in an answer, and why."""

from pathlib import Path

import pytest

from tests.e2e.agent_host import AgentHost, Failure, Json
from tests.e2e.conversations import Speaker


def _explained(host: AgentHost, **which: object) -> dict[str, Json]:
    decisions = host.call("context/explain", sessionId="s", **which)["decisions"]
    found = {decision["messageId"]: decision for decision in decisions}
    assert len(found) == len(decisions), "no message is named twice"
    return found


def test_sent_and_summarised_messages_are_told_apart(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    with AgentHost(tmp_path, engine="default", config={"recall": {"share": 0}}) as host:
        ids = host.ingest("s", *(message for _ in range(20) for message in speaker.turn(60)))
        answer = host.assemble("s", tokenBudget=2500)
        told = _explained(host, resultId=answer.id)
        assert list(told) == ids
        sent = [i for i in ids if told[i]["decision"] == "sent"]
        assert len(sent) == len(answer.raw) - 1 and sent == ids[-len(sent) :]
        older = [told[i] for i in ids[: -len(sent)]]
        assert {d["decision"] for d in older} == {"summarised"}
        assert all(d["by"] and d["reason"] and d["tokens"] > 0 for d in older)


def test_what_left_the_window_is_dropped_with_a_reason(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    with AgentHost(tmp_path, engine="full") as host:
        ids = host.ingest("s", *(message for _ in range(20) for message in speaker.turn(60)))
        host.assemble("s", tokenBudget=2500)
        told = _explained(host)
        assert list(told) == ids
        assert told[ids[0]]["decision"] == "dropped" and told[ids[0]]["reason"]
        assert told[ids[-1]]["decision"] == "sent"


def test_messages_between_a_kept_opener_and_the_cut_are_named_too(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    loop = [message for _ in range(30) for message in speaker.group(60)]
    with AgentHost(tmp_path, engine="full") as host:
        ids = host.ingest("s", speaker.user("go"), *loop)
        answer = host.assemble("s", tokenBudget=1500)
        told = _explained(host, resultId=answer.id)
        assert set(told) == set(ids)
        assert told[ids[0]]["decision"] == "sent" and told[ids[1]]["decision"] == "dropped"


def test_stubs_orphans_and_heartbeats_have_their_own_reasons(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    call = speaker.new_call()
    with AgentHost(tmp_path, engine="full") as host:
        (beat,) = host.ingest("s", speaker.user("beat"), isHeartbeat=True)
        (orphan,) = host.ingest("s", *speaker.results([(speaker.new_call(), "nobody asked")]))
        ids = host.ingest(
            "s",
            speaker.user("read"),
            *speaker.assistant("", [call]),
            *speaker.results([(call, speaker.words(4000))]),
        )
        host.assemble("s", tokenBudget=1000)
        told = _explained(host)
        assert told[ids[-1]]["decision"] == "stubbed"
        assert told[orphan]["decision"] == "dropped" and "result-without-call" in told[orphan]["reason"]
        assert told[beat]["decision"] == "dropped" and "heartbeat" in told[beat]["reason"]


def test_an_answer_is_found_by_its_turn(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    with AgentHost(tmp_path) as host:
        first = host.ingest("s", speaker.user("one"), *speaker.assistant("yes"))
        host.assemble("s")
        host.ingest("s", speaker.user("two"))
        host.assemble("s")
        assert set(_explained(host, turnId="t1")) == set(first)
        assert len(_explained(host, turnId="t2")) == 3
        with pytest.raises(Failure) as refused:
            _explained(host, turnId="t9")
        assert refused.value.code == -32602 and refused.value.data["path"] == "/turnId"


def test_the_two_newest_answers_are_always_explained(tmp_path: Path) -> None:
    with AgentHost(tmp_path) as host:
        host.ingest("s", Speaker("openai").user("one"))
        ids = [host.assemble("s").id for _ in range(30)]
        for known in ids[-2:]:
            assert len(_explained(host, resultId=known)) == 1
        with pytest.raises(Failure) as refused:
            host.call("context/explain", sessionId="nobody")
        assert refused.value.code == 1003
