"""Engines are switched in the middle of everything: what runs ends where it began, the rest begins anew."""

from pathlib import Path

from tests.e2e.processes_of import child, children, until
from tests.e2e.sidecar_host import Host
from tests.e2e.talk import Talk, turns
from tests.engine_gallery import configured, is_served, tell


def test_each_request_is_answered_by_the_engine_of_its_place_in_the_row(tmp_path: Path) -> None:
    with Host(tmp_path / "state") as host:
        sessions = [f"s{number}" for number in range(4)]
        sent: list[tuple[int, str]] = []
        others: list[int] = []
        for round_ in range(12):
            engine = ("terse", "full")[round_ % 2]
            for session in sessions:
                message = Talk("openai").user(f"question {round_}")
                others.append(host.send("context/ingest", sessionId=session, message=message))
                others.append(host.send("session/configure", sessionId=session, engine=engine))
                sent.append((host.send("context/assemble", sessionId=session), engine))
        for id, engine in sent:
            addition = host.wait(id).get("systemPromptAddition") or ""
            assert ("<terse>" in addition) == (engine == "terse")
        for id in others:
            host.wait(id)


def test_a_call_ends_on_the_process_on_which_it_began(tmp_path: Path) -> None:
    with configured(tmp_path, "process", "compact = 30000") as host:
        tell(host, "bad takes_a_while 1")
        old = child(host)
        running = host.send("context/compact", sessionId="bad takes_a_while 1")
        host.call("context/dispose")
        is_served(host, "new")
        assert running not in host.answers and old in children(host) and len(children(host)) == 2
        assert host.wait(running)["reason"] == f"done by {old}"
        until(lambda: old not in children(host), "the old process is left")
        is_served(host, "newer")


def test_a_session_leaves_an_engine_that_is_busy_with_it(tmp_path: Path) -> None:
    with configured(tmp_path, "process", "compact = 30000") as host:
        tell(host, "bad takes_a_while 1")
        old = child(host)
        running = host.send("context/compact", sessionId="bad takes_a_while 1")
        switch = host.send("session/configure", sessionId="bad takes_a_while 1", engine="full")
        answer = host.call("context/assemble", sessionId="bad takes_a_while 1")
        assert host.wait(running)["reason"] == f"done by {old}"
        assert host.wait(switch)["engine"] == "full"
        assert answer["messages"] == turns(Talk("openai"), *range(1, 9))
