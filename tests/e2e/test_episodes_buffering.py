"""Each finished turn becomes one episode, however the host tells of it."""

from pathlib import Path

import pytest
from msgspec import Raw

from tests.e2e.agent_host import AgentHost, Json
from tests.e2e.conversations import Speaker
from tests.e2e.episode_sessions import both, flush, lines, say, until_none_wait

ON: Json = {"episodes": {"enabled": True}}


def _texts(state: Path, session: str = "s") -> list[str]:
    """What the file has of a session."""
    path = state / "episodes.jsonl"
    episodes = (
        [episode for episode in lines(path) if episode["sessionId"] == session] if path.exists() else []
    )
    assert len({episode["key"] for episode in episodes}) == len(episodes)
    return [message["text"] for episode in episodes for message in episode["messages"]]


def _delivered(host: AgentHost, session: str = "s") -> list[str]:
    flush(host, session)
    until_none_wait(host)
    return _texts(host.state, session)


@pytest.mark.parametrize("engine", ["default", "sliding-window"])
def test_turns_that_are_ingested_one_message_at_a_time_are_complete(engine: str, tmp_path: Path) -> None:
    speaker = Speaker("openai")
    with AgentHost(tmp_path, engine=engine, config=ON) as host:
        for text in ("one", "two"):
            host.ingest("s", speaker.user(text))
            host.assemble("s", tokenBudget=8000)
            host.ingest("s", *speaker.assistant(f"You said: {text}"))
        host.ingest("s", speaker.user("three"))
        assert _delivered(host) == both("one", "two"), "the open turn is not an episode yet"


@pytest.mark.parametrize("method", ["ingest", "ingestBatch"])
def test_a_host_that_only_ingests_has_all_its_turns_handed_over(method: str, tmp_path: Path) -> None:
    speaker = Speaker("openai")
    with AgentHost(tmp_path, engine="default", config=ON) as host:
        for text in ("one", "two", "three"):
            turn = [Raw(raw) for raw in (speaker.user(text), *speaker.assistant(f"You said: {text}"))]
            if method == "ingest":
                for message in turn:
                    host.call("context/ingest", sessionId="s", agentId="a", message=message)
            else:
                host.call("context/ingestBatch", sessionId="s", agentId="a", messages=turn)
        assert _delivered(host) == both("one", "two"), "the open turn is not an episode yet"
        host.call("context/dispose")
        until_none_wait(host)
        assert _texts(tmp_path) == both("one", "two", "three")


def test_a_turn_that_goes_on_after_disposing_is_handed_over_in_parts(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    with AgentHost(tmp_path, engine="default", config=ON) as host:
        host.ingest("s", speaker.user("one"))
        host.call("context/dispose")
        host.ingest("s", *speaker.assistant("You said: one"))
        host.call("context/dispose")
        until_none_wait(host)
        assert _texts(tmp_path) == both("one")


def test_turns_that_are_told_by_after_turn_come_with_their_last_one(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    with AgentHost(tmp_path, engine="default", config=ON) as host:
        for text in ("one", "two"):
            turn = [speaker.user(text), *speaker.assistant(f"You said: {text}")]
            host.call("context/afterTurn", sessionId="s", messages=[Raw(raw) for raw in turn])
        assert _delivered(host) == both("one", "two")


def test_what_was_said_before_somebody_asked_for_episodes_is_not_one(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="default") as host:
        say(host, "long ago")
        host.restart(config=ON)
        say(host, "from now on")
        assert _delivered(host) == both("from now on")


def test_other_engines_buffer_nothing(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="full", config=ON) as host:
        say(host, "hello")
        assert _delivered(host) == []


def test_an_engine_that_takes_over_repeats_nothing_and_leaves_nothing_out(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="default", config=ON) as host:
        say(host, "one")
        host.call("session/configure", sessionId="s", engine="sliding-window")
        say(host, "two")
        host.call("session/configure", sessionId="s", engine="default")
        say(host, "three")
        assert _delivered(host) == both("one", "two", "three")


def test_a_fork_and_a_rewound_session_tell_what_is_new_in_them(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="default", config=ON) as host:
        for text in ("one", "two"):
            say(host, text)
        first = host.call("session/export", sessionId="s")["messages"][1]["messageId"]
        host.call("session/fork", sessionId="s", newSessionId="child")
        say(host, "in the child", "child")
        host.call("session/truncate", sessionId="s", afterMessageId=first)
        say(host, "two again")
        assert _delivered(host) == both("one", "two", "two again")
        assert _delivered(host, "child") == both("in the child")


def test_disposing_delivers_what_is_left(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="default", config=ON) as host:
        say(host, "hello")
        host.call("context/dispose")
        until_none_wait(host)
        assert _texts(tmp_path) == both("hello")


def test_an_engine_in_a_process_of_its_own_buffers_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[plugins.entries.default]\nisolation = "process"\n', encoding="utf-8")
    monkeypatch.setenv("CONTEXT_SIDECAR_CONFIG", str(file))
    with AgentHost(tmp_path, engine="default", config=ON) as host:
        say(host, "hello")
        assert _delivered(host) == both("hello")


def test_a_deleted_session_is_gone_from_the_file(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="default", config=ON) as host:
        say(host, "secret of s")
        say(host, "kept of t", "t")
        flush(host)
        until_none_wait(host)
        host.call("session/delete", sessionId="s")
        assert b"secret" not in (tmp_path / "episodes.jsonl").read_bytes()
        assert _texts(tmp_path, "t") == both("kept of t")


def test_a_file_that_says_no_is_heeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[episodes]\nenabled = false\n", encoding="utf-8")
    monkeypatch.setenv("CONTEXT_SIDECAR_CONFIG", str(file))
    with AgentHost(tmp_path, engine="default", config=ON) as host:
        say(host, "private")
        host.call("context/dispose")
    assert not (tmp_path / "episodes.jsonl").exists()
