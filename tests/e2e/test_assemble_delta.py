"""Deltas against an earlier answer give exactly the list that a full answer gives."""

from pathlib import Path
from random import Random

from tests.e2e.agent_host import AgentHost, Assembled
from tests.e2e.conversations import Speaker


def _applied(before: list[bytes], answer: Assembled) -> list[bytes]:
    assert answer.edits is not None and not answer.raw
    edited: list[bytes] = []
    position = 0
    for edit in answer.edits:
        assert position <= edit.start <= len(before), "edits ascend and stay within the list"
        edited += before[position : edit.start] + [bytes(message) for message in edit.messages]
        position = edit.start + edit.deleteCount
        assert position <= len(before)
    return edited + before[position:]


def test_edits_lead_from_the_previous_answer_to_the_new_one(tmp_path: Path) -> None:
    speaker, random = Speaker("openai", 4), Random(4)
    with AgentHost(tmp_path, engine="default", capabilities=["assembleDelta"]) as host:
        known: dict[str, list[bytes]] = {}
        newest = ""
        for _ in range(40):
            host.ingest("s", *speaker.turn(30))
            budget = random.choice((1500, 3000, 6000))
            if not newest:
                first = host.assemble("s", tokenBudget=budget)
                newest, known[first.id] = first.id, first.raw
                continue
            answer = host.assemble("s", tokenBudget=budget, previousResultId=newest)
            whole = host.assemble("s", tokenBudget=budget)
            assert _applied(known[newest], answer) == whole.raw
            known[answer.id] = known[whole.id] = whole.raw
            newest = random.choice((answer.id, whole.id))


def test_an_answer_that_stays_the_same_has_no_edits(tmp_path: Path) -> None:
    with AgentHost(tmp_path, capabilities=["assembleDelta"]) as host:
        host.ingest("s", Speaker("openai").user("hello"))
        first = host.assemble("s")
        again = host.assemble("s", previousResultId=first.id)
        assert again.edits == [] and "messages" not in again.result
        assert again.id != first.id


def test_an_unknown_previous_answer_gives_all_messages(tmp_path: Path) -> None:
    with AgentHost(tmp_path, capabilities=["assembleDelta"]) as host:
        host.ingest("s", Speaker("openai").user("hello"))
        first = host.assemble("s")
        host.ingest("t", Speaker("openai").user("hello"))
        for session, unknown in (("s", "never-given"), ("t", first.id)):
            answer = host.assemble(session, previousResultId=unknown)
            assert len(answer.raw) == 1 and "edits" not in answer.result
        host.restart()
        assert len(host.assemble("s", previousResultId=first.id).raw) == 1


def test_a_host_that_did_not_ask_for_deltas_gets_none(tmp_path: Path) -> None:
    with AgentHost(tmp_path) as host:
        host.ingest("s", Speaker("openai").user("hello"))
        first = host.assemble("s")
        answer = host.assemble("s", previousResultId=first.id)
        assert answer.raw == first.raw and "edits" not in answer.result
