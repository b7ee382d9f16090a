"""Who may see a session: names, agents, dialects, namespaces, aliases."""

import json
from collections.abc import Callable

import pytest

from tests.e2e.conftest import StartHost
from tests.e2e.sidecar_host import Host, Refused, history
from tests.e2e.talk import Talk

TALK = Talk("openai")
MISSING, INVALID = 1003, -32602

READS = [
    ("context/assemble", {"tokenBudget": 1000}),
    ("context/compact", {}),
    ("session/get", {}),
    ("session/export", {}),
    ("session/truncate", {"afterMessageId": "m"}),
]
BY_OTHERS = [
    *READS,
    ("context/ingest", {"message": TALK.user("mine")}),
    ("context/ingestBatch", {"messages": [TALK.user("mine")]}),
    ("context/bootstrap", {"messages": [TALK.user("mine")]}),
    ("context/afterTurn", {"messages": [TALK.user("mine")]}),
    ("context/commitTurn", {"messages": [TALK.user("mine")], "advancementKey": "k"}),
    ("context/assemble", {"messages": [TALK.user("mine")]}),
    ("context/maintain", {}),
    ("context/explain", {}),
    ("session/fork", {"newSessionId": "stolen"}),
]
MAKE_NOTHING = [
    *READS,
    ("context/maintain", {}),
    ("context/explain", {}),
    ("context/preflight", {"tokenBudget": 100}),
    ("context/preflight", {"tokenBudget": 100, "messages": [TALK.user("mine")]}),
    ("memory/compile", {"injectionPoint": "session-start"}),
    ("session/configure", {"engine": "full"}),
    ("session/configure", {"engine": "nothing-of-the-kind"}),
    ("session/delete", {}),
    ("session/fork", {"newSessionId": "stolen"}),
    ("session/pin", {"text": "x"}),
    ("session/pins", {}),
    ("session/summaries", {}),
    ("session/unpin", {"pinId": "p1"}),
    ("tools/call", {"name": "context_search", "arguments": {"mode": "tail"}}),
    ("tools/call", {"name": "no-such-tool"}),
    ("tools/list", {}),
]


NAMES = (
    "é",
    "e\u0301",
    "a/b/../c",
    "..",
    "C:\\x",
    "%00",
    " ",
    "😀" * 1024,
    "'; drop table",
    "x" * 1024,
    "\n",
    "null",
)


def test_a_session_may_have_any_name(start_host: StartHost) -> None:
    host = start_host()
    for id in NAMES:
        host.call("context/ingest", sessionId=id, message=TALK.user(f"said in {id}"))
        host.call("context/ingest", sessionId=f"{id}."[:1023], message=TALK.user("elsewhere"))
    host.restart()
    for id in NAMES:
        assert host.call("session/get", sessionId=id)["sessionId"] == id
        assert history(host, id) == [TALK.user(f"said in {id}")], id
        assert host.call("session/delete", sessionId=id)["deleted"], id
    assert not [file for file in host.state_dir.rglob("*") if file.name.startswith(("a", "..", "x"))]


@pytest.mark.parametrize("id", ["", "x" * 1025, "a\u0000b", None, 7])
def test_what_is_no_name_is_refused(host: Host, id: object) -> None:
    error = host.refusal("context/ingest", sessionId=id, message=TALK.user("hi"))
    assert error.code == INVALID and error.data["path"] == "/sessionId"


def test_a_name_with_half_a_character_is_answered(host: Host) -> None:
    params = '{"sessionId":"half \\ud83d","message":{"role":"user","content":"hi"}}'
    answer = host.wait_raw(host.send_raw("context/ingest", params))
    assert b'"ingested":true' in answer or b"-32602" in answer
    assert host.call("session/list", limit=1)["sessions"]


@pytest.mark.parametrize(("method", "params"), READS)
def test_an_unknown_session_is_not_found(host: Host, method: str, params: dict) -> None:
    assert host.refusal(method, sessionId="nobody-made-it", **params).code == MISSING


@pytest.mark.parametrize(("method", "params"), BY_OTHERS)
def test_another_agent_does_not_find_the_session(host: Host, session: str, method: str, params: dict) -> None:
    host.call(
        "context/ingest", sessionId=session, agentId="owner", messageId="m", message=TALK.user("private")
    )
    assert host.refusal(method, sessionId=session, agentId="other", **params).code == MISSING
    assert history(host, session) == [TALK.user("private")]
    assert host.call("session/get", sessionId=session, agentId="owner")["agentId"] == "owner"


@pytest.mark.parametrize(("method", "params"), MAKE_NOTHING)
def test_another_agents_session_is_answered_as_one_that_is_missing(
    host: Host, session: str, method: str, params: dict
) -> None:
    host.call("session/configure", sessionId=session, agentId="owner", engine="full", config={})
    host.call("context/ingest", sessionId=session, agentId="owner", message=TALK.user("private"))
    host.call("session/pin", sessionId=session, agentId="owner", text="private")
    host.call("context/assemble", sessionId=session, agentId="owner")
    before = host.call("session/get", sessionId=session)

    def answer(name: str) -> str:
        try:
            told: object = host.call(method, sessionId=name, agentId="other", **params)
        except Refused as error:
            told = str(error)
        return json.dumps(told).replace(name, "...")

    assert answer(session) == answer(f"{session}-missing")
    assert host.call("session/get", sessionId=session) == before
    assert history(host, session) == [TALK.user("private")]


def test_what_is_set_for_another_agents_session_is_seen_by_nobody_else(host: Host, session: str) -> None:
    host.call("context/ingest", sessionId=session, agentId="owner", message=TALK.user("private"))
    before = host.call("session/configure", sessionId=session, agentId="owner")

    def other(name: str) -> list[object]:
        asked = {"sessionId": name, "agentId": "other"}
        first = host.call("session/configure", **asked, engine="terse", config={"recentTurns": 2})
        return [first, host.call("session/configure", **asked), host.call("tools/list", **asked)]

    assert other(session) == other(f"{session}-missing")
    assert host.call("session/configure", sessionId=session, agentId="owner") == before
    assert host.call("session/delete", sessionId=session, agentId="owner")["deleted"]
    host.call("context/ingest", sessionId=session, agentId="other", message=TALK.user("mine"))
    assert host.call("session/get", sessionId=session)["engine"] == "terse"


def test_what_an_agent_assembled_without_storing_it_is_its_own(host: Host, session: str) -> None:
    said = [TALK.user("private")]
    host.call("context/assemble", sessionId=session, agentId="owner", messages=said)
    for method, params in (
        ("context/explain", {}),
        ("context/commitTurn", {"messages": [], "advancementKey": "k"}),
    ):
        assert host.refusal(method, sessionId=session, agentId="other", **params).code == MISSING
    host.call("context/preflight", sessionId=f"{session}2", agentId="other", tokenBudget=99, messages=said)
    host.call("context/commitTurn", sessionId=f"{session}2", agentId="owner", messages=[], advancementKey="k")
    assert history(host, f"{session}2") == []


def test_a_request_that_is_refused_takes_no_id(host: Host, session: str) -> None:
    assert host.refusal("context/bootstrap", sessionId=session, agentId="other").code == INVALID
    host.call("context/ingest", sessionId=session, agentId="owner", message=TALK.user("mine"))
    assert host.call("session/get", sessionId=session)["agentId"] == "owner"


def test_lists_of_an_agent_say_nothing_of_other_agents(start_host: StartHost) -> None:
    host = start_host()
    for number in range(9):
        host.call("context/ingest", sessionId=f"s{number}", agentId="owner", message=TALK.user("hi"))
    host.call("context/ingest", sessionId="mine", agentId="other", message=TALK.user("hi"))
    page = host.call("session/list", limit=1, agentId="other")
    assert [entry["sessionId"] for entry in page["sessions"]] == ["mine"] and "nextCursor" not in page


def test_a_key_of_another_agent_does_not_exempt_a_session(start_host: StartHost) -> None:
    host = start_host(config={"sessions": {"ignoreSessionPatterns": ["cron:**"]}})
    host.call("context/ingest", sessionId="s", sessionKey="cron:1", agentId="other", message=TALK.user("x"))
    host.call("context/ingest", sessionId="s", agentId="owner", message=TALK.user("kept"))
    assert history(host, "s") == [TALK.user("kept")]


def test_the_first_agent_that_uses_a_session_owns_it(host: Host, session: str) -> None:
    host.call("context/ingest", sessionId=session, message=TALK.user("nobody's"))
    host.call("context/ingest", sessionId=session, agentId="a", message=TALK.user("a's"))
    assert host.refusal("session/get", sessionId=session, agentId="b").code == MISSING
    assert host.call("context/ingest", sessionId=session, message=TALK.user("the host's"))["ingested"]


def test_a_session_belongs_to_its_agent_after_a_restart(start_host: StartHost, session: str) -> None:
    host = start_host()
    host.call("context/ingest", sessionId=session, agentId="a", message=TALK.user("a's"))
    host.restart(kill=True)
    assert (
        host.refusal("context/ingest", sessionId=session, agentId="b", message=TALK.user("b's")).code
        == MISSING
    )


def test_a_list_for_an_agent_leaves_out_what_others_own(start_host: StartHost) -> None:
    host = start_host()
    for agent in ("a", "b"):
        host.call("context/ingest", sessionId=f"of-{agent}", agentId=agent, message=TALK.user("hi"))
    host.call("context/ingest", sessionId="of-nobody", message=TALK.user("hi"))
    listed = host.call("session/list", agentId="a")["sessions"]
    assert {entry["sessionId"] for entry in listed} == {"of-a", "of-nobody"}


def test_the_latest_session_that_a_key_came_with_has_it(host: Host, session: str) -> None:
    one, two = f"{session}-1", f"{session}-2"
    host.call("context/ingest", sessionId=one, sessionKey="chat", message=TALK.user("1"))
    host.call("context/ingest", sessionId=two, sessionKey="chat", message=TALK.user("2"))
    assert host.call("session/get", sessionId=two)["sessionKey"] == "chat"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("context/ingest", {"message": {"role": "user", "content": "hi"}}),
        ("context/ingestBatch", {"messages": [{"role": "user", "content": "hi"}]}),
        ("context/bootstrap", {"messages": [{"role": "user", "content": "hi"}]}),
        ("context/afterTurn", {"messages": [{"role": "user", "content": "hi"}]}),
        ("context/commitTurn", {"advancementKey": "k", "messages": [{"role": "user", "content": "hi"}]}),
        ("context/assemble", {"tokenBudget": 1000}),
        ("context/assemble", {"messages": [{"role": "user", "content": "hi"}]}),
        ("context/compact", {}),
        ("context/maintain", {}),
        ("context/preflight", {"tokenBudget": 1000}),
        ("context/explain", {}),
    ],
)
def test_engine_methods_of_another_dialect_are_refused(
    serving_hosts: Callable[[str], Host], session: str, method: str, params: dict
) -> None:
    owner, other = serving_hosts("openai"), serving_hosts("anthropic")
    owner.call("context/ingest", sessionId=session, message=TALK.user("chat completions"))
    error = other.refusal(method, sessionId=session, **params)
    assert (error.code, error.data.get("messageFormat")) == (INVALID, "openai")


def test_session_methods_work_in_any_dialect(start_host: StartHost, session: str) -> None:
    owner, other = start_host(), start_host(message_format="anthropic")
    for n in range(3):
        owner.call("context/ingest", sessionId=session, messageId=f"m{n}", message=TALK.user(f"{n}"))
    assert other.call("session/get", sessionId=session)["messageFormat"] == "openai"
    assert other.call("session/export", sessionId=session)["messageFormat"] == "openai"
    assert other.call("session/list")["sessions"][0]["sessionId"] == session
    assert other.call("session/truncate", sessionId=session, afterMessageId="m1")["removedMessages"] == 1
    assert other.call("session/fork", sessionId=session, newSessionId="copy")["messageCount"] == 2
    assert other.call("session/configure", sessionId=session, engine="full")["engine"] == "full"
    assert other.call("session/delete", sessionId=session)["deleted"]
    assert owner.call("session/get", sessionId="copy")["messageFormat"] == "openai"


def test_namespaces_keep_hosts_apart(start_host: StartHost, session: str) -> None:
    one, two = start_host(host={"id": "one"}), start_host(host={"id": "two"})
    same = start_host(host={"id": "three"}, namespace="one")
    one.call("context/ingest", sessionId=session, sessionKey="k", messageId="m", message=TALK.user("one's"))
    assert two.refusal("session/get", sessionId=session).code == MISSING
    assert two.call("session/list")["sessions"] == []
    assert two.call("context/ingest", sessionId=session, messageId="m", message=TALK.user("two's"))[
        "ingested"
    ]
    assert history(same, session) == [TALK.user("one's")]
    two.call("session/delete", sessionId=session)
    assert history(one, session) == [TALK.user("one's")]


def test_agent_settings_of_one_namespace_do_not_reach_another(start_host: StartHost, session: str) -> None:
    one, two = start_host(host={"id": "one"}), start_host(host={"id": "two"})
    one.call("session/configure", agentId="a", engine="full")
    for host, engine in ((one, "full"), (two, "default")):
        host.call("context/ingest", sessionId=session, agentId="a", message=TALK.user("hi"))
        assert host.call("session/get", sessionId=session)["engine"] == engine
