"""Configuring, forking, truncating and deleting sessions."""

import pytest

from tests.e2e.conftest import StartHost
from tests.e2e.sidecar_host import Host, exported, history
from tests.e2e.talk import Talk, turns

TALK = Talk("openai")
MISSING, INVALID, UNAVAILABLE = 1003, -32602, 1001


def filled(host: Host, session: str, count: int = 4) -> list[str]:
    """Stores as many turns; returns the ids of the messages."""
    host.call("context/bootstrap", sessionId=session, messages=turns(TALK, *range(count)))
    return [entry["messageId"] for entry in exported(host, session)]


def test_an_engine_is_switched_for_one_session_and_stays_so(start_host: StartHost, session: str) -> None:
    host = start_host()
    filled(host, session)
    assert host.call("session/configure", sessionId=session, engine="full")["engine"] == "full"
    assert host.call("session/get", sessionId=session)["engine"] == "full"
    host.restart(kill=True)
    assert host.call("session/get", sessionId=session)["engine"] == "full"
    filled(host, f"{session}-other")
    assert host.call("session/get", sessionId=f"{session}-other")["engine"] == "default"
    assert history(host, session) == turns(TALK, 0, 1, 2, 3)


def test_an_engine_is_switched_for_an_agent(start_host: StartHost, session: str) -> None:
    host = start_host()
    host.call("session/configure", agentId="a", engine="full")
    for agent, engine in (("a", "full"), ("b", "default")):
        id = f"{session}-{agent}"
        host.call("context/ingest", sessionId=id, agentId=agent, message=TALK.user("hi"))
        assert host.call("session/get", sessionId=id, agentId=agent)["engine"] == engine
    assert host.call("session/configure", sessionId=f"{session}-a")["engine"] == "full"
    host.call("session/configure", sessionId=f"{session}-a", agentId="a", engine="default")
    assert host.call("session/get", sessionId=f"{session}-a")["engine"] == "default"


def test_a_session_may_be_configured_before_it_is_there(host: Host, session: str) -> None:
    host.call("session/configure", sessionId=session, engine="full")
    assert host.refusal("session/get", sessionId=session).code == MISSING
    filled(host, session, 1)
    assert host.call("session/get", sessionId=session)["engine"] == "full"


def test_an_unknown_engine_changes_nothing(host: Host, session: str) -> None:
    filled(host, session, 1)
    error = host.refusal("session/configure", sessionId=session, engine="no-such-engine")
    assert error.code == UNAVAILABLE and "no-such-engine" in str(error)
    assert host.call("session/get", sessionId=session)["engine"] == "default"


def test_wrong_settings_name_the_key_and_change_nothing(host: Host, session: str) -> None:
    filled(host, session, 1)
    right = {"summaryTokens": 900}
    host.call("session/configure", sessionId=session, engine="default", config=right)
    error = host.refusal("session/configure", sessionId=session, config={"summaryTokens": "many"})
    assert error.code == INVALID and "summaryTokens" in str(error)
    assert host.call("session/configure", sessionId=session)["config"] == right


@pytest.mark.parametrize("config", [[], "text", 7, True])
def test_settings_must_be_an_object(host: Host, session: str, config: object) -> None:
    assert host.refusal("session/configure", sessionId=session, config=config).code == INVALID


def test_configure_needs_somebody_to_configure(host: Host) -> None:
    assert host.refusal("session/configure", engine="full").code == INVALID


def test_a_fork_goes_on_by_itself(start_host: StartHost, session: str) -> None:
    host = start_host()
    ids = filled(host, session)
    child, at = f"{session}-child", ids[7]
    result = host.call("session/fork", sessionId=session, newSessionId=child, atMessageId=at)
    assert result == {"sessionId": child, "messageCount": 8}
    assert [entry["messageId"] for entry in exported(host, child)] == ids[:8]
    host.call("context/bootstrap", sessionId=child, messages=turns(TALK, 0, 1, 9))
    host.call("session/truncate", sessionId=session, afterMessageId=ids[3])
    host.call("context/bootstrap", sessionId=session, messages=turns(TALK, 0, 8))
    host.restart(kill=True)
    assert history(host, child) == turns(TALK, 0, 1, 9)
    assert history(host, session) == turns(TALK, 0, 8)
    host.call("session/delete", sessionId=session)
    assert history(host, child) == turns(TALK, 0, 1, 9)


def test_a_fork_has_the_engine_of_its_parent(host: Host, session: str) -> None:
    filled(host, session)
    host.call("session/configure", sessionId=session, engine="full")
    child = f"{session}-child"
    assert host.refusal("context/assemble", sessionId=child, tokenBudget=100).code == MISSING
    host.call("session/fork", sessionId=session, newSessionId=child)
    assert host.call("session/get", sessionId=child)["engine"] == "full"


def test_a_fork_never_replaces_a_session(host: Host, session: str) -> None:
    filled(host, session)
    filled(host, f"{session}-2", 1)
    for taken in (f"{session}-2", session):
        assert host.refusal("session/fork", sessionId=session, newSessionId=taken).code == INVALID
    assert (
        host.refusal("session/fork", sessionId=session, newSessionId="new", atMessageId="no").code == INVALID
    )
    assert host.refusal("session/fork", sessionId="nobody", newSessionId="new").code == MISSING
    assert history(host, f"{session}-2") == turns(TALK, 0)


def test_a_truncated_session_goes_on_from_there(host: Host, session: str) -> None:
    ids = filled(host, session)
    result = host.call("session/truncate", sessionId=session, afterMessageId=ids[7])
    assert result == {"removedMessages": 8}
    assert host.call("session/truncate", sessionId=session, afterMessageId=ids[7]) == {"removedMessages": 0}
    assert host.refusal("session/truncate", sessionId=session, afterMessageId=ids[9]).code == INVALID
    answer = host.call("context/assemble", sessionId=session, tokenBudget=9000)
    assert answer["messages"] == turns(TALK, 0, 1)
    host.call("context/commitTurn", sessionId=session, advancementKey="retry", messages=TALK.turn(7))
    entries = exported(host, session)
    assert [entry["message"] for entry in entries] == turns(TALK, 0, 1, 7)
    assert entries[-1]["turnId"] == "t3"
    assert not {entry["messageId"] for entry in entries[8:]} & set(ids)


def test_what_the_host_showed_before_a_rewind_does_not_come_back(host: Host, session: str) -> None:
    ids = filled(host, session, 2)
    shown = turns(TALK, 0, 1, 2)
    host.call("context/assemble", sessionId=session, messages=shown, prompt="next", tokenBudget=9000)
    host.call("session/truncate", sessionId=session, afterMessageId=ids[3])
    host.call("context/commitTurn", sessionId=session, advancementKey="k", messages=TALK.turn(5))
    assert history(host, session) == turns(TALK, 0, 5)


def test_a_rewound_id_may_be_used_again(host: Host, session: str) -> None:
    for n in range(3):
        host.call("context/ingest", sessionId=session, messageId=f"m{n}", message=TALK.user(f"{n}"))
    host.call("session/truncate", sessionId=session, afterMessageId="m0")
    again = host.call("context/ingest", sessionId=session, messageId="m1", message=TALK.user("anew"))
    assert again["ingested"]
    assert history(host, session) == [TALK.user("0"), TALK.user("anew")]


def test_nothing_is_left_of_a_deleted_session(start_host: StartHost, session: str) -> None:
    host = start_host()
    needle = "needle-that-must-not-be-found"
    host.call("context/ingest", sessionId=session, sessionKey="chat", message=TALK.user(f"a {needle} b"))
    for n in range(50):
        host.call("context/ingest", sessionId=session, message=TALK.assistant(f"{n} {needle} " * 40))
    host.call("context/commitTurn", sessionId=session, advancementKey="k", messages=[TALK.user(needle)])
    host.call("context/compact", sessionId=session, tokenBudget=500, force=True)
    host.call("context/assemble", sessionId=session, tokenBudget=2000)
    host.call("session/configure", sessionId=session, engine="full")
    assert host.call("session/delete", sessionId=session) == {"deleted": True}
    kept = b"".join(file.read_bytes() for file in host.state_dir.rglob("*") if file.is_file())
    assert needle.encode() not in kept
    for method, params in (("get", {}), ("export", {}), ("truncate", {"afterMessageId": "m"})):
        assert host.refusal(f"session/{method}", sessionId=session, **params).code == MISSING
    assert host.call("session/list")["sessions"] == []
    assert host.call("session/delete", sessionId=session) == {"deleted": False}
    fresh = host.call(
        "context/commitTurn", sessionId=session, advancementKey="k", messages=[TALK.user("new")]
    )
    assert fresh["status"] == "committed"
    assert host.call("session/get", sessionId=session)["engine"] == "default"
    assert history(host, session) == [TALK.user("new")]


def test_changes_are_told(start_host: StartHost, session: str) -> None:
    host = start_host()
    ids = filled(host, session)
    host.call("session/configure", sessionId=session, engine="full")
    host.call("session/truncate", sessionId=session, afterMessageId=ids[3])
    host.call("session/truncate", sessionId=session, afterMessageId=ids[3])
    host.call("session/delete", sessionId=session)
    host.call("session/delete", sessionId=session)
    told = [n["params"] for n in host.notifications if n["method"] == "session/changed"]
    assert told == [{"sessionId": session, "reason": r} for r in ("configured", "truncated", "deleted")]


@pytest.mark.parametrize("value", ["3", 3.5, True, 0])
def test_wrong_settings_are_refused_by_their_place_and_change_nothing(
    start_host: StartHost, session: str, value: object
) -> None:
    host = start_host()
    filled(host, session)
    error = host.refusal(
        "session/configure", sessionId=session, engine="terse", config={"recentTurns": value}
    )
    assert (error.code, error.data["path"]) == (INVALID, "/config/recentTurns")
    assert "config.recentTurns" in str(error)
    assert host.call("session/get", sessionId=session)["engine"] == "default"
