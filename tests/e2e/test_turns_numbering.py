"""Turns, heartbeats and time stamps as the history has them."""

import pytest

from tests.e2e.sidecar_host import Host, exported
from tests.e2e.talk import STAMP_MS, Talk, turns


def turn_ids(host: Host, session: str) -> list[str]:
    return [entry["turnId"] for entry in exported(host, session)]


def test_a_turn_opens_at_a_user_message(speaker: Host, talk: Talk, session: str) -> None:
    ids = [
        speaker.call("context/ingest", sessionId=session, message=message)["turnId"]
        for message in turns(talk, 0, 1, 2)
    ]
    assert ids == ["t1"] * 4 + ["t2"] * 4 + ["t3"] * 4 == turn_ids(speaker, session)
    assert speaker.call("session/get", sessionId=session)["turnCount"] == 3


def test_what_comes_before_the_first_question_is_of_the_first_turn(
    speaker: Host, talk: Talk, session: str
) -> None:
    early = [talk.assistant("welcome"), talk.user("hi"), talk.assistant("hello"), talk.user("bye")]
    speaker.call("context/bootstrap", sessionId=session, messages=early)
    assert turn_ids(speaker, session) == ["t1", "t1", "t1", "t2"]


def test_heartbeats_open_no_turn(speaker: Host, talk: Talk, session: str) -> None:
    def tell(text: str, **more: bool) -> str:
        return speaker.call("context/ingest", sessionId=session, message=talk.user(text), **more)["turnId"]

    assert tell("beat", isHeartbeat=True) == "t1"
    assert tell("first") == "t1"
    assert tell("beat", isHeartbeat=True) == "t1"
    assert tell("second") == "t2"
    beat = [talk.user("beat"), talk.assistant("HEARTBEAT_OK")]
    speaker.call("context/ingestBatch", sessionId=session, messages=beat, isHeartbeat=True)
    speaker.call("context/commitTurn", sessionId=session, advancementKey="b", messages=beat, isHeartbeat=True)
    assert tell("third") == "t3"


def test_the_heartbeat_of_a_whole_transcript_is_only_its_new_part(
    speaker: Host, talk: Talk, session: str
) -> None:
    beat = [talk.user("beat"), talk.assistant("HEARTBEAT_OK")]
    transcript = [*turns(talk, 0, 1), *beat]
    speaker.call(
        "context/afterTurn", sessionId=session, messages=transcript, prePromptMessageCount=8, isHeartbeat=True
    )
    assert turn_ids(speaker, session) == ["t1"] * 4 + ["t2"] * 6


def test_heartbeats_leave_the_context_with_the_next_turn(speaker: Host, talk: Talk, session: str) -> None:
    beat = [talk.user("beat of the heart"), talk.assistant("HEARTBEAT_OK")]
    speaker.call("context/commitTurn", sessionId=session, advancementKey="1", messages=talk.turn(1))
    speaker.call("context/commitTurn", sessionId=session, advancementKey="b", messages=beat, isHeartbeat=True)
    now = speaker.call("context/assemble", sessionId=session, tokenBudget=9000)["messages"]
    assert now == [*talk.turn(1), *beat]
    speaker.call("context/commitTurn", sessionId=session, advancementKey="2", messages=talk.turn(2))
    later = speaker.call("context/assemble", sessionId=session, tokenBudget=9000)["messages"]
    assert later == turns(talk, 1, 2)


def test_the_host_may_name_turns(host: Host, session: str) -> None:
    talk = Talk("openai")
    named = ["a", "a", "b", None, None, "b", "t9"]
    ids = [
        host.call("context/ingest", sessionId=session, turnId=name, message=talk.assistant(f"{n}"))["turnId"]
        for n, name in enumerate(named)
    ]
    assert ids == ["a", "a", "b", "b", "b", "b", "t9"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2024-01-15T10:30:00Z", "2024-01-15T10:30:00.000Z"),
        ("2024-01-15T10:30:00.123456Z", "2024-01-15T10:30:00.123Z"),
        ("2024-01-15T12:30:00+02:00", "2024-01-15T10:30:00.000Z"),
        ("2024-01-15T05:00:00.5-05:30", "2024-01-15T10:30:00.500Z"),
        ("2024-02-29T23:59:59z", "2024-02-29T23:59:59.000Z"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000Z"),
    ],
)
def test_time_stamps_are_kept_in_utc(host: Host, session: str, given: str, kept: str) -> None:
    host.call("context/ingest", sessionId=session, timestamp=given, message=Talk("openai").user("hi"))
    assert exported(host, session)[0]["timestamp"] == kept


@pytest.mark.parametrize(
    "given",
    ["yesterday", "2024-13-01T00:00:00Z", "2024-01-15", "2024-01-15T10:30:00", "", 5, "2023-02-29T00:00:00Z"],
)
def test_what_is_no_time_stamp_is_refused(host: Host, session: str, given: object) -> None:
    error = host.refusal(
        "context/ingest", sessionId=session, timestamp=given, message=Talk("openai").user("hi")
    )
    assert error.code == -32602 and error.data["path"] == "/timestamp"
    assert host.refusal("session/get", sessionId=session).code == 1003


def test_the_time_stamp_of_the_message_counts_where_none_comes_with_it(serving_hosts, session: str) -> None:
    host, talk = serving_hosts("openclaw"), Talk("openclaw")
    host.call("context/ingest", sessionId=session, message=talk.user("hi", stamp=STAMP_MS))
    given = "2024-01-15T10:30:00.000Z"
    host.call("context/ingest", sessionId=session, timestamp=given, message=talk.user("hi", stamp=STAMP_MS))
    assert [entry["timestamp"] for entry in exported(host, session)] == ["2026-11-18T11:06:40.000Z", given]


def test_a_gap_that_is_filled_joins_the_turn_in_front(host: Host, session: str) -> None:
    talk = Talk("openai")
    for number in (0, 2):
        host.call(
            "context/commitTurn", sessionId=session, advancementKey=f"{number}", messages=talk.turn(number)
        )
    host.call("context/bootstrap", sessionId=session, messages=turns(talk, 0, 1, 2))
    assert turn_ids(host, session) == ["t1"] * 8 + ["t2"] * 4


def test_an_empty_transcript_begins_a_session(host: Host, session: str) -> None:
    assert not host.call("context/bootstrap", sessionId=session, messages=[])["bootstrapped"]
    facts = host.call("session/get", sessionId=session)
    assert (facts["messageCount"], facts["turnCount"]) == (0, 0)
