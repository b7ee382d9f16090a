"""Sessions of which nothing is kept: they are served, and leave no trace."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agent_host import AgentHost
from tests.e2e.inner_host import InnerHost
from tests.e2e.sidecar_host import Refused, history
from tests.e2e.talk import DIALECTS, Message, Talk, turns

CRON, SUBAGENT = "agent:main:cron:nightly:1", "agent:main:subagent:42"
SESSIONS = {
    "ignoreSessionPatterns": ["agent:*:cron:**"],
    "statelessSessionPatterns": ["agent:*:subagent:**"],
}
SECRET = "Xylophon"
Start = Callable[..., InnerHost]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts hosts with patterns on one state directory."""
    running: list[InnerHost] = []

    def start_host(
        *, engine: str = "default", sessions: dict[str, Any] = SESSIONS, **options: Any
    ) -> InnerHost:
        config = {"sessions": sessions}
        host = InnerHost(tmp_path, engine=engine, config=config, **options)
        running.append(host)
        return host

    yield start_host
    for host in running:
        host.close()


@pytest.mark.parametrize("key", [CRON, SUBAGENT])
@pytest.mark.parametrize(
    "engine", ["legacy", "full", "terse", "default", "sliding-window", "lossless", "recall"]
)
def test_nothing_of_an_exempt_session_reaches_the_store(
    key: str, engine: str, start: Start, tmp_path: Path
) -> None:
    host = start(engine=engine)
    talk = Talk("openai")
    turn = [talk.user(f"{SECRET} one"), talk.assistant(f"{SECRET} two")]
    named = {"sessionId": "s", "sessionKey": key}
    host.call("context/bootstrap", messages=turn, **named)
    for message in turn:
        host.call("context/ingest", message=message, **named)
    host.call("context/ingestBatch", messages=turn, **named)
    for _ in range(2):
        answer = host.call("context/commitTurn", advancementKey=f"{SECRET}-key", messages=turn, **named)
        assert answer == {"status": "committed"}
    assert host.call("context/assemble", messages=turn, **named)["messages"] == turn
    host.call("context/afterTurn", messages=turn, prePromptMessageCount=0, **named)
    assert host.call("context/maintain", **named)["changed"] is False
    assert host.call("context/compact", force=True, **named)["compacted"] is False
    assert host.call("session/list")["sessions"] == []
    host.restart()
    assert SECRET not in _everything(tmp_path), "the store has something of the session"
    assert host.call("session/list")["sessions"] == []


def test_what_is_ingested_says_why_it_is_not_kept(start: Start) -> None:
    host = start()
    message = {"role": "user", "content": "hello"}
    answer = host.call("context/ingest", sessionId="s", sessionKey=CRON, message=message, messageId="m1")
    assert answer["ingested"] is False and answer["messageId"] == "m1"
    assert "sessions.ignoreSessionPatterns" in answer["reason"]
    batch = host.call("context/ingestBatch", sessionId="s", messages=[message], messageIds=["m2"])
    assert batch == {"ingestedCount": 0, "messageIds": ["m2"]}


def test_what_is_no_message_is_refused_in_an_exempt_session_too(start: Start) -> None:
    host = start()
    with pytest.raises(Refused) as refused:
        host.call("context/commitTurn", sessionId=CRON, advancementKey="k", messages=[{"no": "role"}])
    assert refused.value.code == -32602 and refused.value.data["path"].startswith("/messages/0")


def test_patterns_match_ids_and_keys_as_a_whole_and_nothing_else(start: Start) -> None:
    host = start(sessions={"ignoreSessionPatterns": ["job-*", "a.b"]})
    message = {"role": "user", "content": "hello"}
    kept = {
        name: host.call("context/ingest", sessionId=name, message=message)["ingested"]
        for name in ("job-1", "job-", "my-job-1", "job-1:part", "a.b", "axb", "JOB-1")
    }
    assert kept == {
        "job-1": False, "job-": False, "my-job-1": True, "job-1:part": True,
        "a.b": False, "axb": True, "JOB-1": True,
    }  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stateless_session_is_served_within_its_budget_and_valid(dialect: str, start: Start) -> None:
    host = start(message_format=dialect)
    told = turns(Talk(dialect), *range(60))
    for _ in range(2):
        answer = host.call("context/assemble", sessionId=SUBAGENT, messages=told, tokenBudget=600)
        assert answer["estimatedTokens"] <= 600
        assert answer["messages"][-1] == told[-1] and len(answer["messages"]) < len(told)


def test_a_stateless_session_reads_what_was_stored_before_the_pattern_was_set(start: Start) -> None:
    host = start(sessions={"ignoreSessionPatterns": ["nothing"]})
    talk = Talk("openai")
    stored = turns(talk, 1, 2)
    host.call("context/ingestBatch", sessionId=SUBAGENT, messages=stored)
    host.restart(config={"sessions": SESSIONS})
    assert host.call("context/assemble", sessionId=SUBAGENT)["messages"] == stored
    new: list[Message] = talk.turn(3)
    host.call("context/assemble", sessionId=SUBAGENT, messages=[*stored, *new], prompt="and now?")
    host.call("context/commitTurn", sessionId=SUBAGENT, advancementKey="k", messages=talk.turn(4))
    assert history(host, SUBAGENT) == stored
    assert host.call("session/delete", sessionId=SUBAGENT) == {"deleted": True}


def test_an_ignored_session_is_compacted_by_a_host_that_can(tmp_path: Path) -> None:
    options: dict[str, Any] = {"engine": "default", "config": {"sessions": SESSIONS}}
    with AgentHost(tmp_path, capabilities=["runtime/compact"], **options) as host:
        host.answerers["runtime/compact"] = lambda params: {"ok": True, "compacted": True}
        answer = host.call("context/compact", sessionId="s", sessionKey=CRON, force=True, tokenBudget=100)
        assert answer["compacted"] is True and host.asked[0][1]["sessionId"] == "s"


def test_a_pin_and_a_fork_are_refused_rather_than_forgotten(start: Start) -> None:
    host = start()
    host.call("context/ingest", sessionId="kept", message={"role": "user", "content": "hello"})
    for method, params in (
        ("session/pin", {"sessionId": CRON, "text": "remember"}),
        ("session/fork", {"sessionId": "kept", "newSessionId": SUBAGENT}),
    ):
        with pytest.raises(Refused, match="nothing is kept") as refused:
            host.call(method, **params)
        assert refused.value.code == -32602


def test_a_child_of_which_nothing_is_kept_begins_with_nothing(start: Start) -> None:
    host = start()
    host.call("context/ingest", sessionId="parent", sessionKey="p", message={"role": "user", "content": "hi"})
    prepared = host.call(
        "subagent/prepareSpawn",
        parentSessionKey="p",
        childSessionKey=SUBAGENT,
        childSessionId="child",
        contextMode="fork",
    )
    with pytest.raises(Refused, match="1003"):
        host.call("session/get", sessionId="child")
    undone = host.call("subagent/rollbackSpawn", preparationId=prepared["preparationId"])
    assert undone == {"rolledBack": False}


def test_doctor_says_how_many_sessions_are_not_kept_and_warns_where_all_are(start: Start) -> None:
    host = start()
    host.call("context/ingest", sessionId=CRON, message={"role": "user", "content": "hello"})
    check = _check(host)
    assert check["ok"] and "1 such sessions" in check["message"]
    check = _check(start(sessions={"statelessSessionPatterns": ["**"]}))
    assert not check["ok"] and "nothing is kept" in check["message"] and "**" not in check["fix"]


def _check(host: InnerHost) -> dict[str, Any]:
    checks = host.call("engine/doctor")["checks"]
    return next(check for check in checks if check["name"] == "sessions")


def _everything(state: Path) -> str:
    """All that is written in the store's files."""
    return "".join(path.read_bytes().decode("latin-1") for path in sorted(state.glob("context.db*")))
