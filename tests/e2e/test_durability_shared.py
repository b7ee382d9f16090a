"""Two processes on one state directory."""

import random

from tests.e2e.conftest import StartHost
from tests.e2e.sidecar_host import exported, history
from tests.e2e.talk import Talk, turns

TALK = Talk("openai")


def test_two_processes_that_take_turns_see_each_others_messages(start_host: StartHost, session: str) -> None:
    hosts = [start_host(), start_host()]
    said: list[dict] = []
    for n in range(12):
        host, other = hosts[n % 2], hosts[(n + 1) % 2]
        turn = TALK.turn(n)
        if n % 3 == 0:
            host.call("context/commitTurn", sessionId=session, advancementKey=f"k{n}", messages=turn)
        elif n % 3 == 1:
            host.call("context/bootstrap", sessionId=session, messages=[*said, *turn])
        else:
            for message in turn:
                host.call("context/ingest", sessionId=session, message=message)
        said += turn
        answer = other.call("context/assemble", sessionId=session, tokenBudget=50_000)
        assert answer["messages"] == said
        answer = other.call(
            "context/assemble", sessionId=session, messages=said, prompt="next", tokenBudget=50_000
        )
        assert answer["messages"] == said
    assert history(hosts[0], session) == history(hosts[1], session) == said


def test_two_processes_that_write_at_once_keep_everything_in_their_own_order(
    start_host: StartHost, session: str
) -> None:
    hosts = [start_host(), start_host()]
    chance = random.Random(7)
    ids: list[list[int]] = [[], []]
    for n in range(300):
        which = chance.randrange(2)
        message = TALK.user(f"{which} {n}")
        ids[which].append(hosts[which].send("context/ingest", sessionId=session, message=message))
    for which, host in enumerate(hosts):
        assert all(result["ingested"] for result in host.wait_all(ids[which]))
    entries = exported(hosts[0], session)
    texts = [entry["message"]["content"] for entry in entries]
    assert len(texts) == 300
    for which in ("0", "1"):
        numbers = [int(text.split()[1]) for text in texts if text.startswith(which)]
        assert numbers == sorted(numbers)
    assert len({entry["messageId"] for entry in entries}) == 300


def test_one_key_in_two_processes_is_used_once(start_host: StartHost, session: str) -> None:
    hosts = [start_host(), start_host()]
    for n in range(20):
        params = {"sessionId": session, "advancementKey": f"k{n}", "messages": TALK.turn(n)}
        ids = [host.send("context/commitTurn", **params) for host in hosts]
        statuses = [host.wait(id)["status"] for host, id in zip(hosts, ids, strict=True)]
        assert sorted(statuses) == ["committed", "duplicate"]
    assert history(hosts[0], session) == turns(TALK, *range(20))


def test_a_session_that_the_other_process_deletes_is_gone(start_host: StartHost, session: str) -> None:
    one, two = start_host(), start_host()
    one.call("context/bootstrap", sessionId=session, messages=turns(TALK, 0, 1))
    one.call("context/assemble", sessionId=session, tokenBudget=9000)
    two.call("session/delete", sessionId=session)
    assert one.refusal("context/assemble", sessionId=session, tokenBudget=9000).code == 1003
    one.call("context/ingest", sessionId=session, message=TALK.user("anew"))
    assert two.call("context/assemble", sessionId=session, tokenBudget=9000)["messages"] == [
        TALK.user("anew")
    ]


def test_a_session_that_the_other_process_rewinds_is_shorter(start_host: StartHost, session: str) -> None:
    one, two = start_host(), start_host()
    one.call("context/bootstrap", sessionId=session, messages=turns(TALK, 0, 1, 2))
    one.call("context/assemble", sessionId=session, tokenBudget=9000)
    ids = [entry["messageId"] for entry in exported(two, session)]
    two.call("session/truncate", sessionId=session, afterMessageId=ids[3])
    assert one.call("context/assemble", sessionId=session, tokenBudget=9000)["messages"] == TALK.turn(0)
    one.call("context/commitTurn", sessionId=session, advancementKey="k", messages=TALK.turn(5))
    assert history(two, session) == turns(TALK, 0, 5)
