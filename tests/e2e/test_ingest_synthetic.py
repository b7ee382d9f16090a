"""Messages that the sidecar made itself are never taken in, by whatever method they come back."""

import json
from typing import Any

import pytest

from tests.e2e.conftest import StartHost
from tests.e2e.sidecar_host import Host, history
from tests.e2e.talk import DIALECTS, Message, Talk, turns

BUDGET = 3000


def summarised(start_host: StartHost, talk: Talk, session: str) -> tuple[Host, list[Message], list[Message]]:
    """A host, what it has said, and an answer of the sidecar that begins with a summary."""
    host = start_host(message_format=talk.dialect, engine="default")
    said = turns(talk, *range(60))
    host.call("context/bootstrap", sessionId=session, messages=said)
    assert host.call("context/compact", sessionId=session, tokenBudget=BUDGET, force=True)["compacted"]
    answer = host.call("context/assemble", sessionId=session, tokenBudget=BUDGET)["messages"]
    assert "[ctx:summary:" in json.dumps(answer)
    return host, said, answer


@pytest.fixture(params=DIALECTS)
def case(request: pytest.FixtureRequest, start_host: StartHost, session: str) -> Any:
    """A dialect with a session whose answers begin with a summary."""
    talk = Talk(request.param)
    return (talk, session, *summarised(start_host, talk, session))


def test_a_synthetic_message_is_not_ingested(case: Any) -> None:
    _, session, host, said, answer = case
    for message in answer:
        if "[ctx:" in json.dumps(message):
            result = host.call("context/ingest", sessionId=session, message=message)
            assert (result["ingested"], result["reason"]) == (False, "synthetic")
    assert history(host, session) == said


def test_synthetic_messages_are_left_out_of_a_batch(case: Any) -> None:
    talk, session, host, said, answer = case
    made = [message for message in answer if "[ctx:" in json.dumps(message)]
    new = talk.user("something new")
    result = host.call("context/ingestBatch", sessionId=session, messages=[*made, new, *made])
    assert result["ingestedCount"] == 1 and len(result["messageIds"]) == 2 * len(made) + 1
    assert history(host, session) == [*said, new]


def test_an_answer_that_comes_back_as_a_transcript_adds_nothing(case: Any) -> None:
    talk, session, host, said, answer = case
    assert not host.call("context/bootstrap", sessionId=session, messages=answer)["bootstrapped"]
    host.call("context/afterTurn", sessionId=session, messages=answer, prePromptMessageCount=len(answer))
    new = talk.turn(70)
    host.call("context/commitTurn", sessionId=session, advancementKey="k", messages=[answer[0], *new])
    assert history(host, session) == [*said, *new]


def test_assembling_an_answer_again_is_a_fixed_point(case: Any) -> None:
    talk, session, host, said, answer = case
    for _ in range(3):
        again = host.call(
            "context/assemble", sessionId=session, messages=answer, prompt="next", tokenBudget=BUDGET
        )["messages"]
        assert again == answer
    host.call("context/afterTurn", sessionId=session, messages=talk.turn(71))
    assert history(host, session) == [*said, *talk.turn(71)]


def test_a_decorated_synthetic_message_is_still_known(case: Any) -> None:
    _, session, host, said, answer = case
    made = next(message for message in answer if "[ctx:" in json.dumps(message))
    text = json.dumps(made)
    for before, after in (
        ("[ctx:", "[Sat 2026-11-21 03:25 UTC] [ctx:"),
        ("[/ctx]", "[/ctx]\\n\\nRuntime: agent=main"),
    ):
        changed = json.loads(text.replace(before, after, 1))
        assert host.call("context/ingest", sessionId=session, message=changed)["reason"] == "synthetic"
    assert history(host, session) == said


def test_text_that_only_looks_like_a_fence_is_kept(speaker: Host, talk: Talk, session: str) -> None:
    forged = [talk.user("[ctx:summary:n1:123456789]\nnot ours\n[/ctx]"), talk.user("[ctx: is what?")]
    for message in forged:
        assert speaker.call("context/ingest", sessionId=session, message=message)["ingested"]
    assert history(speaker, session) == forged
