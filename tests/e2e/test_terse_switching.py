"""The terse engine over the life of a session: other engines, restarts, rewinds, forks."""

from tests.e2e.sidecar_host import Host, exported, history
from tests.e2e.terse_sessions import assemble, log_of, logged, questions, tell_turns, turn, use_terse


def did(first: int, last: int) -> list[str]:
    return [f"did {n}" for n in range(first, last + 1)]


def test_terse_to_full_and_back_keeps_the_history(host: Host, session: str) -> None:
    use_terse(host, session)
    tell_turns(host, session, 1, 8)
    stored = history(host, session)
    assert logged(assemble(host, session)) == did(1, 5)
    assert host.call("session/configure", sessionId=session, engine="full")["engine"] == "full"
    whole = assemble(host, session)
    assert whole["messages"] == stored and "systemPromptAddition" not in whole
    use_terse(host, session)
    assert logged(assemble(host, session)) == did(1, 5)
    assert history(host, session) == stored


def test_what_came_while_another_engine_served_is_in_the_log(host: Host, session: str) -> None:
    use_terse(host, session)
    tell_turns(host, session, 1, 5)
    assemble(host, session)
    host.call("session/configure", sessionId=session, engine="full")
    tell_turns(host, session, 6, 12)
    use_terse(host, session)
    assert logged(assemble(host, session)) == did(1, 9)


def test_the_engine_of_an_agent_holds_for_its_sessions(host: Host, session: str) -> None:
    agent = f"agent-{session}"
    host.call("session/configure", agentId=agent, engine="terse", config={"recentTurns": 1})
    for number in (1, 2, 3):
        for message in turn(number):
            host.call("context/ingest", sessionId=session, agentId=agent, message=message)
    answer = assemble(host, session, agentId=agent)
    assert logged(answer) == did(1, 2) and questions(answer) == [3]


def test_the_setting_and_the_log_survive_a_restart(start_host, session: str) -> None:
    host = start_host()
    use_terse(host, session, recentTurns=2)
    tell_turns(host, session, 1, 8)
    before = assemble(host, session)
    host.restart(kill=True)
    after = assemble(host, session)
    assert (after["messages"], after["contextEpoch"]) == (before["messages"], before["contextEpoch"])
    assert host.call("session/get", sessionId=session)["engine"] == "terse"
    host.call("session/configure", sessionId=session, engine="full")
    host.restart()
    assert assemble(host, session)["messages"] == history(host, session)


def test_a_rewind_takes_lines_out_of_the_log(host: Host, session: str) -> None:
    use_terse(host, session, recentTurns=1)
    tell_turns(host, session, 1, 9)
    assert logged(assemble(host, session)) == did(1, 8)
    fifth = exported(host, session)[19]["messageId"]
    host.call("session/truncate", sessionId=session, afterMessageId=fifth)
    assert logged(assemble(host, session)) == did(1, 4)
    tell_turns(host, session, 20, 21)
    assert logged(assemble(host, session)) == [*did(1, 5), "did 20"]


def test_a_rewind_forgets_a_block_that_is_gone(host: Host, session: str) -> None:
    use_terse(host, session, recentTurns=2, recentTurnsSlack=3)
    tell_turns(host, session, 1, 9)
    assemble(host, session)
    second = exported(host, session)[7]["messageId"]
    host.call("session/truncate", sessionId=session, afterMessageId=second)
    assert questions(assemble(host, session)) == [1, 2]


def test_a_fork_has_the_log_of_its_part(host: Host, session: str) -> None:
    use_terse(host, session, recentTurns=1)
    tell_turns(host, session, 1, 9)
    assemble(host, session)
    fifth = exported(host, session)[19]["messageId"]
    child = f"{session}-child"
    host.call("session/fork", sessionId=session, newSessionId=child, atMessageId=fifth)
    assert logged(assemble(host, child)) == did(1, 4)
    tell_turns(host, child, 30, 30)
    assert logged(assemble(host, child)) == did(1, 5)
    assert logged(assemble(host, session)) == did(1, 8)


def test_a_session_made_anew_has_no_old_lines(host: Host, session: str) -> None:
    use_terse(host, session, recentTurns=1)
    tell_turns(host, session, 1, 5)
    assemble(host, session)
    host.call("session/delete", sessionId=session)
    use_terse(host, session, recentTurns=1)
    tell_turns(host, session, 11, 13)
    assert logged(assemble(host, session)) == ["did 11", "did 12"]


def test_a_message_that_comes_to_light_later_brings_its_line(host: Host, session: str) -> None:
    use_terse(host, session, recentTurns=1)
    whole = [message for number in range(1, 7) for message in turn(number)]
    host.call("context/bootstrap", sessionId=session, messages=whole[:4] + whole[8:])
    assert logged(assemble(host, session)) == ["did 1", *did(3, 5)]
    host.call("context/bootstrap", sessionId=session, messages=whole)
    assert logged(assemble(host, session)) == did(1, 5)


def test_the_log_of_thousands_of_messages_is_the_same_after_restart_and_rewind(
    start_host, session: str
) -> None:
    host = start_host(engine="terse")
    turns = [message for number in range(1, 1001) for message in turn(number)]
    for at in range(0, len(turns), 1000):
        host.call("context/ingestBatch", sessionId=session, messages=turns[at : at + 1000])
    assert logged(assemble(host, session, 100_000)) == did(1, 997)
    host.restart(kill=True)
    assert logged(assemble(host, session, 100_000)) == did(1, 997)
    middle = next(e["messageId"] for e in exported(host, session) if e["turnId"] == "t601")
    host.call("session/truncate", sessionId=session, afterMessageId=middle)
    host.restart(kill=True)
    assert logged(assemble(host, session, 100_000)) == did(1, 598)
    assert len(log_of(assemble(host, session, 100_000))) == 598
