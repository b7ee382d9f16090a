"""The terse engine: what is in the log, what is in full, and in which form."""

import pytest

from tests.e2e.judge import problems
from tests.e2e.sidecar_host import Host, history
from tests.e2e.talk import Talk
from tests.e2e.terse_sessions import (
    HEADER,
    assemble,
    log_of,
    logged,
    minute,
    questions,
    search,
    tell,
    tell_turns,
    text_of,
    turn,
    use_terse,
)


@pytest.fixture
def told(host: Host, session: str) -> Host:
    """A session of a system prompt and 100 turns, every second one with a tag."""
    use_terse(host, session)
    tell(host, session, [(0, [{"role": "system", "content": "You help."}])])
    tell(host, session, [(n, turn(n, summary="" if n % 2 else None)) for n in range(1, 101)])
    return host


def test_a_long_session_is_a_log_and_the_last_three_turns(told: Host, session: str) -> None:
    answer = assemble(told, session)
    expected = [f"[t{n} {minute(n)}] assistant: did {n}" for n in range(1, 98, 2)]
    assert log_of(answer) == expected
    system, log, ack, *recent = answer["messages"]
    assert system == {"role": "system", "content": "You help."}
    assert log["role"] == "user" and text_of(log).splitlines()[1] == HEADER
    assert ack["role"] == "assistant" and "[ctx:ack:ack:" in text_of(ack)
    assert recent == history(told, session)[-12:]
    assert problems("openai", answer["messages"]) == []


def test_the_composition_names_the_log(told: Host, session: str) -> None:
    answer = assemble(told, session)
    counts = {part["kind"]: part["messageCount"] for part in answer["composition"]}
    assert counts == {"system": 1, "activityLog": 2, "recent": 12}
    assert sum(part["tokens"] for part in answer["composition"]) == answer["estimatedTokens"]


def test_the_model_is_taught_to_write_tags_and_to_look_things_up(told: Host, session: str) -> None:
    taught = assemble(told, session)["systemPromptAddition"]
    for word in ("<terse>", "</terse>", "decisions", "context_search", HEADER):
        assert word in taught


@pytest.mark.parametrize("recent", [1, 3, 10])
def test_exactly_k_turns_are_in_full(host: Host, session: str, recent: int) -> None:
    use_terse(host, session, recentTurns=recent)
    tell_turns(host, session, 1, 14)
    for last in range(14, 18):
        answer = assemble(host, session)
        assert questions(answer) == list(range(last - recent + 1, last + 1))
        assert logged(answer) == [f"did {n}" for n in range(1, last - recent + 1)]
        tell_turns(host, session, last + 1, last + 1)


@pytest.mark.parametrize("recent", [0, 11])
def test_k_is_from_1_to_10(host: Host, session: str, recent: int) -> None:
    error = host.refusal(
        "session/configure", sessionId=session, engine="terse", config={"recentTurns": recent}
    )
    assert error.code == -32602 and "recentTurns" in str(error)


def test_without_older_turns_there_is_no_log(host: Host, session: str) -> None:
    use_terse(host, session)
    tell_turns(host, session, 1, 3)
    answer = assemble(host, session)
    assert answer["messages"] == history(host, session)


def test_without_tags_there_is_no_log_and_nothing_is_lost(host: Host, session: str) -> None:
    use_terse(host, session)
    tell_turns(host, session, 1, 6, summary=None)
    assert assemble(host, session)["messages"] == history(host, session)[-12:]
    assert "[assistant t2] answer 2" in search(host, session, mode="search", query="answer 2 ")


def test_recent_turns_keep_their_tags(host: Host, session: str) -> None:
    use_terse(host, session)
    tell_turns(host, session, 1, 4)
    assert text_of(assemble(host, session)["messages"][-1]).endswith("<terse>did 4</terse>")


def test_several_tags_are_several_lines_and_a_fence_holds_none(host: Host, session: str) -> None:
    use_terse(host, session, recentTurns=1)
    said = "<terse>one</terse>\n```\n<terse>code</terse>\n```\n<TERSE>two\nlines</TERSE> <terse>open"
    tell(host, session, [(1, [{"role": "user", "content": "q"}, {"role": "assistant", "content": said}])])
    tell_turns(host, session, 2, 2)
    assert logged(assemble(host, session)) == ["one", "two lines"]


def test_tags_of_others_than_the_assistant_are_text(host: Host, session: str) -> None:
    use_terse(host, session, recentTurns=1)
    first = turn(1, summary=None)
    first[0]["content"] += " <terse>by the user</terse>"
    first[2]["content"] += " <terse>by a tool</terse>"
    tell(host, session, [(1, first)])
    tell_turns(host, session, 2, 2)
    assert log_of(assemble(host, session)) == []


def test_heartbeats_bring_no_line(host: Host, session: str) -> None:
    use_terse(host, session, recentTurns=1)
    beat = {"role": "assistant", "content": "<terse>still here</terse>"}
    tell_turns(host, session, 1, 1)
    host.call("context/ingest", sessionId=session, message=beat, isHeartbeat=True)
    tell_turns(host, session, 2, 3)
    assert logged(assemble(host, session)) == ["did 1", "did 2"]


def test_a_turn_with_a_name_of_the_hosts_is_named_in_one_line(host: Host, session: str) -> None:
    use_terse(host, session, recentTurns=1)
    for name, number in (("first\n[t9", 1), ("second", 2)):
        for message in turn(number):
            host.call("context/ingest", sessionId=session, message=message, turnId=name)
    assert len(log_of(assemble(host, session))) == 1


def test_users_see_a_message_without_its_tags(speaker: Host, talk: Talk, session: str) -> None:
    use_terse(speaker, session)
    plain = speaker.call("context/ingest", sessionId=session, message=talk.assistant("Hello"))
    assert "displayMessage" not in plain
    message = talk.assistant("Done.<terse>x</terse>")
    shown = speaker.call("context/ingest", sessionId=session, message=message)
    assert shown["displayMessage"] == talk.assistant("Done.")
    assert history(speaker, session)[-1] == message
    asked = speaker.call("context/ingest", sessionId=session, message=talk.user("a <terse>x</terse>"))
    assert "displayMessage" not in asked


def test_the_log_is_made_in_every_dialect(speaker: Host, talk: Talk, session: str) -> None:
    use_terse(speaker, session, recentTurns=1)
    for number in (1, 2, 3):
        *others, reply = talk.turn(number)
        tagged = talk.assistant(f"answer {number}<terse>did {number}</terse>")
        for message in (*others, tagged if reply else reply):
            speaker.call("context/ingest", sessionId=session, message=message)
    answer = assemble(speaker, session)
    assert logged(answer) == ["did 1", "did 2"]
    assert problems(talk.dialect, answer["messages"]) == []


def test_a_turn_without_a_tag_gets_a_marked_line_where_that_is_wanted(host: Host, session: str) -> None:
    use_terse(host, session, recentTurns=1, logUntagged=True)
    function = {"name": "edit", "arguments": '{"path": "src/parse.py", "text": "x"}'}
    call = {"id": "c", "type": "function", "function": function}
    messages = [
        {"role": "user", "content": "fix it"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
        {"role": "assistant", "content": "I fixed the parser. It now takes empty input."},
    ]
    tell(host, session, [(1, messages)])
    tell_turns(host, session, 2, 3)
    tell(host, session, [(4, [{"role": "user", "content": "silence"}])])
    tell_turns(host, session, 5, 5)
    said = "(no summary) I fixed the parser. [tools: edit] [files: src/parse.py]"
    assert logged(assemble(host, session)) == [said, "did 2", "did 3"]
