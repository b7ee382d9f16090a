"""Sessions that sessions spawn: what they begin with, also after a restart."""

import time

import pytest

from tests.e2e.conftest import StartHost
from tests.e2e.sidecar_host import LIMIT_S, Host, exported, history
from tests.e2e.talk import Talk, turns

TALK = Talk("openai")
MISSING, INVALID = 1003, -32602


def spoken(host: Host, session: str, count: int = 2) -> list[dict[str, object]]:
    """Stores as many turns in a session that has its own name as key."""
    said = turns(TALK, *range(count))
    host.call("context/bootstrap", sessionId=session, sessionKey=session, messages=said)
    return said


def spawn(host: Host, session: str, mode: str = "fork", **params: object) -> str:
    """The preparation of a child of the session."""
    child = f"{session}-child"
    return host.call(
        "subagent/prepareSpawn", parentSessionKey=session, childSessionKey=child, contextMode=mode, **params
    )["preparationId"]


def child_says(host: Host, session: str, text: str = "child", **params: object) -> str:
    """The child sends its first message, under an id of which nobody knew; returns the id."""
    id = f"{session}-uuid"
    host.call(
        "context/ingest", sessionId=id, sessionKey=f"{session}-child", message=TALK.user(text), **params
    )
    return id


def test_a_fork_begins_with_the_parents_history_of_that_moment(host: Host, session: str) -> None:
    said = spoken(host, session)
    spawn(host, session)
    host.call("context/ingest", sessionId=session, message=TALK.user("later"))
    child = child_says(host, session)
    assert history(host, child) == [*said, TALK.user("child")]
    assert history(host, session) == [*said, TALK.user("later")]


def test_what_a_fork_hands_over_again_is_not_stored_again(host: Host, session: str) -> None:
    said = spoken(host, session)
    spawn(host, session)
    new = [TALK.user("task"), TALK.assistant("done")]
    params = {"sessionId": f"{session}-uuid", "sessionKey": f"{session}-child"}
    answer = host.call("context/assemble", **params, messages=[*said, new[0]], tokenBudget=10_000)
    assert answer["messages"] == [*said, new[0]]
    host.call("context/afterTurn", **params, messages=[*said, *new], prePromptMessageCount=len(said))
    assert history(host, f"{session}-uuid") == [*said, *new]


def test_an_isolated_child_begins_empty(host: Host, session: str) -> None:
    spoken(host, session)
    spawn(host, session, "isolated")
    assert history(host, child_says(host, session)) == [TALK.user("child")]


def test_a_fork_of_nothing_is_refused_and_an_isolated_child_is_not(host: Host, session: str) -> None:
    params = {"parentSessionKey": session, "childSessionKey": "c", "contextMode": "fork"}
    assert host.refusal("subagent/prepareSpawn", **params).code == MISSING
    assert host.call("subagent/prepareSpawn", **params | {"contextMode": "isolated"})["preparationId"]


def test_a_child_whose_id_is_taken_is_refused(host: Host, session: str) -> None:
    spoken(host, session)
    host.call("context/ingest", sessionId=f"{session}-uuid", message=TALK.user("mine"))
    params = {"parentSessionKey": session, "childSessionKey": "c", "contextMode": "fork"}
    error = host.refusal("subagent/prepareSpawn", **params, childSessionId=f"{session}-uuid")
    assert (error.code, error.data["path"]) == (INVALID, "/childSessionId")
    assert history(host, f"{session}-uuid") == [TALK.user("mine")]


def test_a_fork_keeps_its_parents_engine_and_may_be_another_agents(host: Host, session: str) -> None:
    host.call("session/configure", sessionId=session, engine="full")
    host.call("context/ingest", sessionId=session, sessionKey=session, agentId="main", message=TALK.user("a"))
    spawn(host, session)
    child = child_says(host, session, agentId="helper")
    assert host.call("session/get", sessionId=child, agentId="helper")["engine"] == "full"
    assert len(exported(host, child)) == 2


def test_prepared_forks_survive_a_crash(start_host: StartHost, session: str) -> None:
    host = start_host()
    said = spoken(host, session)
    preparation = spawn(host, session)
    host.restart(kill=True)
    child = child_says(host, session)
    assert history(host, child) == [*said, TALK.user("child")]
    assert host.call("subagent/rollbackSpawn", preparationId=preparation) == {"rolledBack": False}


def test_a_rollback_leaves_nothing_of_the_preparation(start_host: StartHost, session: str) -> None:
    host = start_host()
    said = spoken(host, session)
    preparation = spawn(host, session)
    host.restart(kill=True)
    assert host.call("subagent/rollbackSpawn", preparationId=preparation) == {"rolledBack": True}
    assert host.call("subagent/rollbackSpawn", preparationId=preparation) == {"rolledBack": False}
    assert history(host, child_says(host, session)) == [TALK.user("child")]
    assert history(host, session) == said


@pytest.mark.parametrize("reason", ["deleted", "completed", "swept", "released"])
def test_an_end_erases_the_child_only_where_it_was_deleted(host: Host, session: str, reason: str) -> None:
    spoken(host, session)
    spawn(host, session)
    child = child_says(host, session)
    for _ in range(2):
        assert host.call("subagent/ended", childSessionKey=f"{session}-child", reason=reason) == {}
    if reason == "deleted":
        assert host.refusal("session/get", sessionId=child).code == MISSING
    else:
        assert host.call("session/get", sessionId=child)["messageCount"] == 9


def test_a_preparation_whose_time_is_over_is_swept(host: Host, session: str) -> None:
    spoken(host, session)
    preparation = spawn(host, session, ttlMs=1, childSessionId=f"{session}-uuid")
    await_gone(host, f"{session}-uuid")
    assert host.call("subagent/rollbackSpawn", preparationId=preparation) == {"rolledBack": False}
    assert history(host, child_says(host, session)) == [TALK.user("child")]


def test_what_expired_while_no_process_was_there_is_swept(start_host: StartHost, session: str) -> None:
    host = start_host()
    spoken(host, session)
    spawn(host, session, ttlMs=1, childSessionId=f"{session}-uuid")
    host.restart(kill=True)
    await_gone(host, f"{session}-uuid")


def test_requests_of_a_child_do_not_overtake_its_spawn(host: Host, session: str) -> None:
    said = turns(TALK, *range(40))
    child, params = f"{session}-uuid", {"sessionKey": f"{session}-child"}
    sent = [
        host.send("context/bootstrap", sessionId=session, sessionKey=session, messages=said),
        host.send(
            "subagent/prepareSpawn",
            parentSessionKey=session,
            childSessionKey=f"{session}-child",
            contextMode="fork",
        ),
        host.send("context/ingest", sessionId=child, message=TALK.user("one"), **params),
        host.send("context/ingest", sessionId=child, message=TALK.user("two"), **params),
    ]
    for id in sent:
        host.wait(id)
    assert history(host, child) == [*said, TALK.user("one"), TALK.user("two")]


def test_requests_of_a_copy_do_not_overtake_the_copying(host: Host, session: str) -> None:
    said = turns(TALK, *range(40))
    copy = f"{session}-copy"
    sent = [
        host.send("context/bootstrap", sessionId=session, messages=said),
        host.send("session/fork", sessionId=session, newSessionId=copy),
        host.send("context/ingest", sessionId=copy, message=TALK.user("one")),
        host.send("session/delete", sessionId=session),
        host.send("session/fork", sessionId=copy, newSessionId=session),
    ]
    for id in sent:
        host.wait(id)
    assert history(host, copy) == history(host, session) == [*said, TALK.user("one")]


def await_gone(host: Host, session_id: str) -> None:
    """Asks until the session is not listed any more."""
    deadline = time.monotonic() + LIMIT_S
    while session_id in [entry["sessionId"] for entry in host.call("session/list")["sessions"]]:
        assert time.monotonic() < deadline, "the preparation was not swept"
