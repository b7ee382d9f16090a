"""What was handed over as episodes is found again, and injected where it is called for, once."""

from pathlib import Path

from tests.e2e.agent_host import Json
from tests.e2e.episode_sessions import flush, lines, to_webhook, until_none_wait
from tests.e2e.memory_host import MemoryHost, appended
from tests.webhook_server import WebhookServer

SLOT: Json = {"plugins": {"slots": {"memory": ["episodes"]}}}
ON: Json = {"episodes": {"enabled": True}, **SLOT}
FACT = "The staging cluster listens on port 7443."
QUESTION = "Which port does the staging cluster use?"


def _remembering(host: MemoryHost) -> None:
    """A session of yesterday, delivered; then a new one."""
    host.session = "yesterday"
    host.say(FACT)
    host.say("Lunch was fine.")
    flush(host, "yesterday")
    until_none_wait(host)
    host.session, host.transcript = "today", []


def test_another_session_is_remembered_once(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config=ON) as host:
        _remembering(host)
        first = appended(host.say(QUESTION))
        assert first.count(FACT) == 1 and "Lunch" not in first
        assert appended(host.say("And the port of the staging cluster again?")) == ""
        host.restart()
        assert appended(host.say("Tell me the staging port.")) == ""


def test_another_agent_remembers_nothing_of_it(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config=ON) as host:
        _remembering(host)
        host.agent = "agent-2"
        assert appended(host.say(QUESTION)) == ""


def test_what_the_model_sees_is_not_injected_until_it_is_compacted_away(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, engine="sliding-window", config=ON) as host:
        host.say(FACT)
        flush(host, host.session)
        until_none_wait(host)
        assert appended(host.say(QUESTION)) == ""
        for number in range(8):
            host.say(f"Something else, number {number}. " * 20)
        done = host.call("context/compact", sessionId=host.session, tokenBudget=700, force=True)
        assert done["compacted"]
        host.transcript = []
        assert FACT not in str(host.ask("Go on.").messages)
        assert appended(host.say(QUESTION)).count(FACT) == 1


def test_what_was_injected_is_not_handed_over_again(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, config=ON) as host:
        _remembering(host)
        assert FACT in appended(host.say(QUESTION))
        flush(host, "today")
        until_none_wait(host)
        assert (tmp_path / "episodes.jsonl").read_text(encoding="utf-8").count(FACT) == 1
        newest = lines(tmp_path / "episodes.jsonl")[-1]["messages"]
        assert [message["text"] for message in newest] == [QUESTION, "I see."]


def test_a_webhook_is_searched_where_it_says_so(tmp_path: Path) -> None:
    with WebhookServer() as server:
        server.hits = [{"id": "r1", "content": FACT, "score": 0.9}]
        config = {**to_webhook(server, searchUrl=server.url.replace("/episodes", "/search")), **SLOT}
        with MemoryHost(tmp_path, config=config) as host:
            assert appended(host.say(QUESTION)).count(FACT) == 1
            assert appended(host.say("Which port was it on staging?")) == ""
        asked = server.searches[0]
        assert (asked["agentId"], asked["namespace"]) == ("agent-1", "e2e")
        assert QUESTION in asked["query"]


def test_what_a_webhook_finds_may_come_in_many_pieces(tmp_path: Path) -> None:
    with WebhookServer() as server:
        others = [{"id": f"o{n}", "content": f"Other {n}. " * 3000} for n in range(20)]
        server.hits = [{"id": "r1", "content": FACT}, *others]
        config = {**to_webhook(server, searchUrl=server.url.replace("/episodes", "/search")), **SLOT}
        with MemoryHost(tmp_path, config=config) as host:
            assert appended(host.say(QUESTION)).count(FACT) == 1


def test_a_search_that_fails_costs_the_turn_nothing(tmp_path: Path) -> None:
    with WebhookServer() as server:
        config = {**to_webhook(server, searchUrl=server.url.replace("/episodes", "/nowhere")), **SLOT}
        with MemoryHost(tmp_path, config=config) as host:
            assert appended(host.say(QUESTION)) == ""
            assert host.injected() == []
