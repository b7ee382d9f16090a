"""Advancement keys: a turn is stored once, and two turns that look the same are two."""

import pytest

from tests.e2e.conftest import StartHost
from tests.e2e.sidecar_host import Host, Refused, history
from tests.e2e.talk import Message, Talk, turns


def commit(host: Host, session: str, key: str, messages: list[Message]) -> str:
    return host.call("context/commitTurn", sessionId=session, advancementKey=key, messages=messages)["status"]


def test_the_same_key_is_a_duplicate_whatever_it_brings(speaker: Host, talk: Talk, session: str) -> None:
    assert commit(speaker, session, "k", talk.turn(0)) == "committed"
    assert commit(speaker, session, "k", talk.turn(0)) == "duplicate"
    assert commit(speaker, session, "k", talk.turn(1)) == "duplicate"
    assert history(speaker, session) == talk.turn(0)


def test_the_same_key_in_another_session_is_another_key(host: Host, session: str) -> None:
    talk = Talk("openai")
    assert commit(host, session, "k", talk.turn(0)) == "committed"
    assert commit(host, f"{session}-other", "k", talk.turn(0)) == "committed"


def test_a_key_that_comes_twice_at_once_is_used_once(speaker: Host, talk: Talk, session: str) -> None:
    params = {"sessionId": session, "advancementKey": "k", "messages": talk.turn(0)}
    ids = [speaker.send("context/commitTurn", **params) for _ in range(20)]
    statuses = [result["status"] for result in speaker.wait_all(ids)]
    assert statuses == ["committed"] + ["duplicate"] * 19
    assert history(speaker, session) == talk.turn(0)


@pytest.mark.parametrize("kill", [True, False])
def test_a_key_is_known_after_a_restart(start_host: StartHost, session: str, kill: bool) -> None:
    host, talk = start_host(), Talk("openai")
    assert commit(host, session, "k", talk.turn(0)) == "committed"
    host.restart(kill=kill)
    assert commit(host, session, "k", talk.turn(0)) == "duplicate"
    assert history(host, session) == talk.turn(0)


def test_a_refused_commit_does_not_use_its_key_up(speaker: Host, talk: Talk, session: str) -> None:
    error = speaker.refusal(
        "context/commitTurn",
        sessionId=session,
        advancementKey="k",
        messages=[*talk.turn(0), {"text": "no role"}],
    )
    assert error.code == -32602 and error.data["path"].startswith("/messages/4")
    assert commit(speaker, session, "k", talk.turn(0)) == "committed"
    assert history(speaker, session) == talk.turn(0)


def test_a_cancelled_commit_does_not_use_its_key_up(host: Host, session: str) -> None:
    talk = Talk("openai")
    for n in range(20):
        first = host.send(
            "context/commitTurn", sessionId=session, advancementKey=f"a{n}", messages=talk.turn(2 * n)
        )
        second = host.send(
            "context/commitTurn", sessionId=session, advancementKey=f"b{n}", messages=talk.turn(2 * n + 1)
        )
        host.cancel(second)
        host.cancel(first)
        for id, key, number in ((first, f"a{n}", 2 * n), (second, f"b{n}", 2 * n + 1)):
            try:
                assert host.wait(id)["status"] == "committed"
                expected = "duplicate"
            except Refused as error:
                assert error.code == -32800
                expected = "committed"
            assert commit(host, session, key, talk.turn(number)) == expected
    stored = [message["content"] for message in history(host, session) if message["role"] == "user"]
    assert sorted(stored) == sorted(talk.turn(n)[0]["content"] for n in range(40))


def test_two_turns_with_the_same_short_texts_are_both_kept(speaker: Host, talk: Talk, session: str) -> None:
    for n in range(4):
        assert commit(speaker, session, f"k{n}", talk.short_turn()) == "committed"
    assert history(speaker, session) == talk.short_turn() * 4


def test_two_turns_with_the_same_texts_and_counted_call_ids_are_both_kept(
    speaker: Host, talk: Talk, session: str
) -> None:
    turn = [
        talk.user("list them"),
        talk.call("call_0", "ls", {}),
        talk.result("call_0", "ls", "a b c"),
        talk.assistant("a, b and c"),
    ]
    for n in range(3):
        assert commit(speaker, session, f"k{n}", turn) == "committed"
    assert history(speaker, session) == turn * 3


def test_equal_turns_are_told_apart_after_a_restart(start_host: StartHost, session: str) -> None:
    host, talk = start_host(), Talk("openai")
    commit(host, session, "k1", talk.short_turn())
    host.restart()
    commit(host, session, "k2", talk.short_turn())
    assert history(host, session) == talk.short_turn() * 2


def test_equal_turns_are_told_apart_between_two_processes(start_host: StartHost, session: str) -> None:
    talk = Talk("openai")
    hosts = [start_host(), start_host()]
    for n in range(6):
        assert commit(hosts[n % 2], session, f"k{n}", talk.short_turn()) == "committed"
    assert history(hosts[0], session) == talk.short_turn() * 6


def test_an_equal_turn_behind_an_imported_one_is_kept(speaker: Host, talk: Talk, session: str) -> None:
    speaker.call("context/bootstrap", sessionId=session, messages=talk.short_turn())
    speaker.call(
        "context/assemble", sessionId=session, messages=talk.short_turn(), prompt="ok", tokenBudget=9999
    )
    commit(speaker, session, "k1", talk.short_turn())
    assert history(speaker, session) == talk.short_turn() * 2


def test_equal_turns_of_after_turn_are_kept_where_the_model_was_asked_in_between(
    speaker: Host, talk: Talk, session: str
) -> None:
    speaker.call("context/afterTurn", sessionId=session, messages=talk.short_turn())
    for _ in range(2):
        speaker.call("context/assemble", sessionId=session, prompt="ok", tokenBudget=9999)
        speaker.call("context/afterTurn", sessionId=session, messages=talk.short_turn())
    assert history(speaker, session) == talk.short_turn() * 3


def test_a_turn_that_was_told_twice_by_after_turn_is_kept_once(
    speaker: Host, talk: Talk, session: str
) -> None:
    for _ in range(2):
        speaker.call("context/afterTurn", sessionId=session, messages=talk.turn(0))
    assert history(speaker, session) == talk.turn(0)


def test_a_committed_turn_that_is_rewound_may_be_committed_again(
    speaker: Host, talk: Talk, session: str
) -> None:
    commit(speaker, session, "k0", talk.turn(0))
    commit(speaker, session, "k1", talk.short_turn())
    entries = speaker.call("session/export", sessionId=session)["messages"]
    speaker.call("session/truncate", sessionId=session, afterMessageId=entries[3]["messageId"])
    for message in talk.short_turn():
        speaker.call("context/ingest", sessionId=session, message=message)
    commit(speaker, session, "k2", talk.short_turn())
    assert history(speaker, session) == [*talk.turn(0), *talk.short_turn()]
    commit(speaker, session, "k3", talk.short_turn())
    assert history(speaker, session) == [*talk.turn(0), *talk.short_turn(), *talk.short_turn()]


def test_a_fork_keeps_equal_turns_apart_like_its_parent(speaker: Host, talk: Talk, session: str) -> None:
    for n in range(2):
        commit(speaker, session, f"k{n}", talk.short_turn())
    entries = speaker.call("session/export", sessionId=session)["messages"]
    child = f"{session}-child"
    speaker.call("session/fork", sessionId=session, newSessionId=child, atMessageId=entries[1]["messageId"])
    for message in talk.short_turn():
        speaker.call("context/ingest", sessionId=child, message=message)
    commit(speaker, child, "k9", talk.short_turn())
    assert history(speaker, child) == talk.short_turn() * 2
    assert history(speaker, session) == talk.short_turn() * 2


def test_turns_go_on_being_stored_whole(speaker: Host, talk: Talk, session: str) -> None:
    for n in range(5):
        assert commit(speaker, session, f"k{n}", talk.turn(n)) == "committed"
    assert history(speaker, session) == turns(talk, *range(5))


def test_a_commit_of_the_whole_transcript_stores_what_is_new(speaker: Host, talk: Talk, session: str) -> None:
    for last in (1, 2, 3):
        whole = [message for number in range(last) for message in talk.turn(number)]
        assert commit(speaker, session, f"k{last}", whole) == "committed"
        assert history(speaker, session) == whole


def test_a_commit_that_begins_with_the_last_turn_goes_on_from_there(
    speaker: Host, talk: Talk, session: str
) -> None:
    commit(speaker, session, "k1", [*talk.turn(0), *talk.turn(1)])
    commit(speaker, session, "k2", [*talk.turn(1), *talk.turn(2)])
    assert history(speaker, session) == [*talk.turn(0), *talk.turn(1), *talk.turn(2)]
