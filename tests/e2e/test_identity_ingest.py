"""Identity where messages come one by one: only ids count."""

from tests.e2e.sidecar_host import Host, exported, history
from tests.e2e.talk import Talk


def test_without_an_id_equal_messages_are_all_kept(speaker: Host, talk: Talk, session: str) -> None:
    for _ in range(3):
        assert speaker.call("context/ingest", sessionId=session, message=talk.user("ok"))["ingested"]
    assert history(speaker, session) == [talk.user("ok")] * 3


def test_the_same_id_and_text_again_is_a_duplicate(speaker: Host, talk: Talk, session: str) -> None:
    first = speaker.call("context/ingest", sessionId=session, messageId="m1", message=talk.user("hello"))
    again = speaker.call("context/ingest", sessionId=session, messageId="m1", message=talk.user("  hello\n"))
    assert first["ingested"] and first["messageId"] == "m1"
    assert (again["ingested"], again["reason"], again["messageId"]) == (False, "duplicate", "m1")
    assert again["turnId"] == first["turnId"]
    assert history(speaker, session) == [talk.user("hello")]


def test_the_same_id_with_other_text_is_a_conflict_and_the_first_stays(
    speaker: Host, talk: Talk, session: str
) -> None:
    speaker.call("context/ingest", sessionId=session, messageId="m1", message=talk.user("hello"))
    other = speaker.call("context/ingest", sessionId=session, messageId="m1", message=talk.user("goodbye"))
    assert (other["ingested"], other["reason"]) == (False, "conflict")
    assert history(speaker, session) == [talk.user("hello")]


def test_the_same_id_with_another_role_is_a_conflict(speaker: Host, talk: Talk, session: str) -> None:
    speaker.call("context/ingest", sessionId=session, messageId="m1", message=talk.user("hello"))
    other = speaker.call("context/ingest", sessionId=session, messageId="m1", message=talk.assistant("hello"))
    assert other["reason"] == "conflict"


def test_the_request_id_wins_over_the_id_inside(serving_hosts, session: str) -> None:
    host = serving_hosts("openclaw")
    message = {"role": "assistant", "content": [{"type": "text", "text": "hi"}], "responseId": "r1"}
    first = host.call("context/ingest", sessionId=session, messageId="a", message=message)
    again = host.call("context/ingest", sessionId=session, message=message)
    assert first["messageId"] == again["messageId"] == "a"
    assert again["reason"] == "duplicate"


def test_ids_inside_messages_identify_them(serving_hosts, session: str) -> None:
    inside = {
        "openclaw": [
            {"role": "user", "content": "one", "idempotencyKey": "k1:user"},
            {"role": "assistant", "content": [{"type": "text", "text": "two"}], "responseId": "r1"},
        ],
        "openai-responses": [
            {"type": "message", "id": "msg_1", "role": "user", "content": "one"},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
        ],
    }
    for dialect, messages in inside.items():
        host, id = serving_hosts(dialect), f"{session}-{dialect}"
        for message in messages:
            assert host.call("context/ingest", sessionId=id, message=message)["ingested"]
        for message in messages:
            assert host.call("context/ingest", sessionId=id, message=message)["reason"] == "duplicate"
        changed = {**messages[0], "content": "changed"}
        assert host.call("context/ingest", sessionId=id, message=changed)["reason"] == "conflict"
        assert history(host, id) == messages


def test_a_batch_takes_ids_and_leaves_out_what_it_knows(speaker: Host, talk: Talk, session: str) -> None:
    one, two, three = (talk.user(text) for text in ("one", "two", "three"))
    speaker.call("context/ingest", sessionId=session, messageId="m1", message=one)
    result = speaker.call(
        "context/ingestBatch",
        sessionId=session,
        messages=[one, two, two, three],
        messageIds=["m1", "m2", "m2", None],
    )
    assert result["ingestedCount"] == 2
    assert result["messageIds"][:3] == ["m1", "m2", "m2"]
    assert history(speaker, session) == [one, two, three]
    assert [entry["messageId"] for entry in exported(speaker, session)] == [
        "m1",
        "m2",
        result["messageIds"][3],
    ]


def test_a_batch_with_too_few_ids_stores_nothing(host: Host, session: str) -> None:
    talk = Talk("openai")
    error = host.refusal(
        "context/ingestBatch", sessionId=session, messages=[talk.user("a"), talk.user("b")], messageIds=["x"]
    )
    assert error.code == -32602 and error.data["path"] == "/messageIds"
    assert host.refusal("session/get", sessionId=session).code == 1003


def test_a_batch_with_one_wrong_message_stores_none(speaker: Host, talk: Talk, session: str) -> None:
    error = speaker.refusal(
        "context/ingestBatch", sessionId=session, messages=[talk.user("a"), {"content": "no role"}]
    )
    assert error.code == -32602 and error.data["path"].startswith("/messages/1")
    assert speaker.refusal("session/get", sessionId=session).code == 1003


def test_an_empty_batch_is_no_error(host: Host, session: str) -> None:
    result = host.call("context/ingestBatch", sessionId=session, messages=[])
    assert result == {"ingestedCount": 0, "messageIds": []}


def test_ids_that_look_like_made_up_ones_are_kept_apart(host: Host, session: str) -> None:
    talk = Talk("openai")
    first = host.call("context/ingest", sessionId=session, message=talk.user("0"))["messageId"]
    tag, _, number = first.rpartition("-")
    taken = [f"{tag}-{int(number) + step}" for step in (1, 2, 5)]
    for id in taken:
        assert host.call("context/ingest", sessionId=session, messageId=id, message=talk.user(id))["ingested"]
    for text in "abcdef":
        assert host.call("context/ingest", sessionId=session, message=talk.user(text))["ingested"]
    ids = [entry["messageId"] for entry in exported(host, session)]
    assert len(ids) == len(set(ids)) == 10


def test_message_ids_may_be_anything(host: Host, session: str) -> None:
    ids = ["a/b", "..", "é", "e\u0301", "x" * 3000, "0", " ", "\u0000", "名前", "%s'; --"]
    for id in ids:
        result = host.call("context/ingest", sessionId=session, messageId=id, message=Talk("openai").user(id))
        assert (result["ingested"], result["messageId"]) == (True, id)
    assert [entry["messageId"] for entry in exported(host, session)] == ids


def test_ids_that_differ_in_half_a_character_alone_are_two(host: Host, session: str) -> None:
    named = [("cut \ud83d", "one"), ("cut \ud83e", "two"), ("cut \ude00", "three"), ("cut", "four")]
    known: dict[str, str] = {}
    for name, text in named:
        message = {"role": "user", "content": text}
        answer = host.call("context/ingest", sessionId=session, messageId=name, message=message)
        assert answer["ingested"], answer
        known[name] = answer["messageId"]
        again = host.call("context/ingest", sessionId=session, messageId=name, message=message)
        assert (again["reason"], again["messageId"]) == ("duplicate", known[name])
        told = host.call("context/ingest", sessionId=session, messageId=known[name], message=message)
        assert told["reason"] == "duplicate", "the id that was told is that of the message too"
    assert len(set(known.values())) == len(named)
    assert [message["content"] for message in history(host, session)] == [text for _, text in named]


def test_sessions_that_differ_in_half_a_character_alone_are_two(host: Host, session: str) -> None:
    for half in ("\ud83d", "\ud83e"):
        host.call(
            "context/ingest", sessionId=session + half, message={"role": "user", "content": f"in {half!r}"}
        )
    for half in ("\ud83d", "\ud83e"):
        assert [message["content"] for message in history(host, session + half)] == [f"in {half!r}"]
