"""What `recall` recalls behind a heartbeat goes with it, so that what comes after keeps its place."""

from pathlib import Path

from tests.e2e.inner_host import InnerHost
from tests.e2e.talk import Message, Talk

TOPIC = "the build of the northern branch"


def test_what_was_recalled_behind_a_heartbeat_leaves_with_it(tmp_path: Path) -> None:
    talk = Talk("openai")
    host = InnerHost(tmp_path, engine="recall")
    told: list[Message] = []

    def commit(number: int, *, heartbeat: bool = False) -> None:
        looked = f"looked at {TOPIC} {number}: " + "every stage of it was logged, and none failed. " * 30
        turn = [talk.user(f"{TOPIC} {number}"), talk.assistant(looked)]
        host.call(
            "context/commitTurn",
            sessionId="s",
            advancementKey=str(number),
            messages=turn,
            isHeartbeat=heartbeat,
        )
        told.extend(turn)

    def asked(messages: list[Message]) -> list[Message]:
        answer = host.call("context/assemble", sessionId="s", messages=messages, prompt=TOPIC)
        return answer["messages"]

    commit(1)
    commit(2)
    commit(3, heartbeat=True)
    host.call("context/compact", sessionId="s", force=True, tokenBudget=128_000)
    recalled = asked(told)[-1]
    assert "[ctx:recall:" in recalled["content"], "something is recalled behind the heartbeat"
    commit(4)
    answer = asked(told)
    assert recalled not in answer
    assert asked(answer) == answer, "an own answer is a fixed point"
    host.close()
