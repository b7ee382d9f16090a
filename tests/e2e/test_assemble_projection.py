"""The answer as instructions and a prompt, for a backend that keeps its own thread."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import StartHost
from tests.e2e.sidecar_host import Host, Refused
from tests.e2e.talk import Talk, turns

Projection = dict[str, Any]


def projected(host: Host, session: str, **members: Any) -> Projection:
    """The projection of an answer."""
    answer = host.call("context/assemble", sessionId=session, projection="codex", **members)
    return answer["contextProjection"]


def test_the_history_comes_before_the_turns_own_text(talk: Talk, speaker: Host, session: str) -> None:
    messages = [*turns(talk, 1, 2), talk.user("And now?")]
    projection = projected(speaker, session, messages=messages)
    prompt = projection["prompt"]
    assert projection["mode"] == "thread_bootstrap"
    assert prompt.endswith("And now?")
    history = prompt.removesuffix("And now?").strip()
    assert history.startswith("[ctx:note:history:") and history.endswith("[/ctx]")
    places = [history.index(text) for text in ("question 1", "sum 1 is 2", "answer 1", "question 2")]
    assert places == sorted(places)
    assert "[tool] add: sum 1 is 2" in history


def test_what_was_done_in_the_turn_is_there_as_data(talk: Talk, speaker: Host, session: str) -> None:
    call = talk.call("call_1", "look", {"at": "the sky"})
    messages = [talk.user("Look up."), call, talk.result("call_1", "look", "It is blue.")]
    prompt = projected(speaker, session, messages=messages)["prompt"]
    assert prompt.startswith("[ctx:note:turn:") and prompt.endswith("Look up.")
    assert "[tool] look: It is blue." in prompt


def test_a_prompt_that_the_host_adds_ends_the_prompt(host: Host, session: str) -> None:
    talk = Talk("openai")
    messages = turns(talk, 1)
    prompt = projected(host, session, messages=messages, prompt="The new one")["prompt"]
    assert prompt.endswith("[/ctx]\n\nThe new one")
    known = projected(host, session, messages=[*messages, talk.user("Again")], prompt="Again")["prompt"]
    assert known.count("Again") == 1


def test_system_messages_are_the_developers_instructions(host: Host, session: str) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    projection = projected(host, session, messages=messages)
    assert projection["developerInstructions"] == "Be brief."
    assert projection["prompt"] == "Hello"


def test_fingerprint_and_epoch_stay_while_nothing_changes(host: Host, session: str) -> None:
    messages = [*turns(Talk("openai"), 1), {"role": "user", "content": "now"}]
    first = projected(host, session, messages=messages)
    assert projected(host, session, messages=messages) == first
    host.call("context/commitTurn", sessionId=session, advancementKey="1", messages=messages)
    assert projected(host, session) == first


def test_another_turn_keeps_the_epoch_and_changes_the_fingerprint(host: Host, session: str) -> None:
    messages = [*turns(Talk("openai"), 1), {"role": "user", "content": "now"}]
    first = projected(host, session, messages=messages)
    more = [*messages, {"role": "assistant", "content": "done"}, {"role": "user", "content": "next"}]
    second = projected(host, session, messages=more)
    assert second["epoch"] == first["epoch"]
    assert second["fingerprint"] != first["fingerprint"]


@pytest.mark.parametrize("change", ["an edit", "an instruction", "a compaction"])
def test_the_epoch_changes_where_the_thread_cannot_go_on(host: Host, session: str, change: str) -> None:
    talk = Talk("openai")
    messages = [{"role": "system", "content": "Be brief."}, *turns(talk, *range(1, 9)), talk.user("now")]
    first = projected(host, session, messages=messages)
    host.call("context/commitTurn", sessionId=session, advancementKey="1", messages=messages)
    match change:
        case "an edit":
            messages = [messages[0], talk.user("another beginning"), *messages[2:]]
        case "an instruction":
            messages = [*messages, {"role": "system", "content": "Be kind."}]
        case _:
            assert host.call("context/compact", sessionId=session, force=True)["compacted"]
    assert projected(host, session, messages=messages)["epoch"] != first["epoch"]


def test_the_epoch_survives_a_restart(start_host: StartHost) -> None:
    messages = [*turns(Talk("openai"), 1), {"role": "user", "content": "now"}]
    host = start_host()
    first = projected(host, "s", messages=messages)
    host.close()
    assert projected(start_host(), "s", messages=messages) == first


def test_sessions_never_share_an_epoch(host: Host, session: str) -> None:
    messages = turns(Talk("openai"), 1)
    host.call("context/commitTurn", sessionId=session, advancementKey="1", messages=messages)
    host.call("session/fork", sessionId=session, newSessionId=f"{session} fork")
    epochs = [projected(host, session)["epoch"], projected(host, f"{session} fork")["epoch"]]
    host.call("session/delete", sessionId=session)
    host.call("context/commitTurn", sessionId=session, advancementKey="1", messages=messages)
    epochs.append(projected(host, session)["epoch"])
    assert len(set(epochs)) == 3


def test_a_prompt_that_comes_back_is_the_users_own_text(host: Host, session: str) -> None:
    talk = Talk("openai")
    messages = [*turns(talk, 1), talk.user("And now?")]
    host.call("context/commitTurn", sessionId=session, advancementKey="1", messages=messages)
    prompt = projected(host, session)["prompt"]
    back = [*messages[:-1], talk.user(prompt), talk.assistant("Nothing.")]
    host.call("context/commitTurn", sessionId=session, advancementKey="2", messages=back)
    stored = host.call("session/export", sessionId=session)["messages"]
    assert [entry["message"] for entry in stored] == [*messages, talk.assistant("Nothing.")]


def test_legacy_leaves_the_history_to_the_thread(tmp_path: Path) -> None:
    messages = [*turns(Talk("openai"), 1), {"role": "user", "content": "now"}]
    with Host(tmp_path, engine="legacy") as host:
        projection = projected(host, "s", messages=messages)
    assert projection["mode"] == "per_turn"
    assert projection["prompt"] == "now" and projection["developerInstructions"] == ""


def test_no_projection_without_asking(host: Host, session: str) -> None:
    answer = host.call("context/assemble", sessionId=session, messages=[{"role": "user", "content": "x"}])
    assert "contextProjection" not in answer
    with pytest.raises(Refused) as refused:
        host.call("context/assemble", sessionId=session, projection="else")
    assert refused.value.code == -32602


def test_a_prompt_that_the_host_has_stored_tells_no_history_again(talk: Talk, start_host: StartHost) -> None:
    messages = turns(talk, 1)
    host = start_host(message_format=talk.dialect)
    for number in range(2, 5):
        asked = f"question {number}"
        prompt = projected(host, "s", messages=messages, prompt=asked)["prompt"]
        assert prompt.count("sum 1 is 2") == 1 and prompt.count("[ctx:") == 1
        assert prompt.count(asked) == 1 and prompt.endswith(asked)
        turn = [talk.user(prompt), talk.assistant(f"reply {number}")]
        host.call("context/commitTurn", sessionId="s", advancementKey=f"k{number}", messages=turn)
        messages += turn
