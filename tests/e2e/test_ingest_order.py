"""Requests of one session take effect in order, sessions go side by side, cancelling is all or nothing."""

import pytest

from tests.e2e.conftest import StartHost
from tests.e2e.sidecar_host import Host, Refused, exported, history
from tests.e2e.talk import Talk

TALK = Talk("openai")
CANCELLED = -32800


def test_three_hundred_pipelined_requests_of_one_session_take_effect_in_order(
    start_host: StartHost, session: str
) -> None:
    host = start_host(lines=True)
    ids: list[int] = []
    for n in range(300):
        if n % 10 == 4:
            messages = [TALK.user(f"{n}a"), TALK.user(f"{n}b")]
            ids.append(host.send("context/ingestBatch", sessionId=session, messages=messages))
        elif n % 10 == 7:
            ids.append(host.send("context/assemble", sessionId=session, tokenBudget=50_000))
        elif n % 10 == 9:
            turn = [TALK.user(f"{n}")]
            ids.append(
                host.send("context/commitTurn", sessionId=session, advancementKey=f"{n}", messages=turn)
            )
        else:
            ids.append(host.send("context/ingest", sessionId=session, message=TALK.user(f"{n}")))
    results = host.wait_all(ids)
    assert not [result for result in results if isinstance(result, Refused)]
    expected: list[str] = []
    for n, result in enumerate(results):
        if n % 10 == 7:
            assert [message["content"] for message in result["messages"]] == expected
        elif n % 10 == 4:
            expected += [f"{n}a", f"{n}b"]
        else:
            expected.append(f"{n}")
    assert [message["content"] for message in history(host, session)] == expected


def test_the_first_request_of_a_session_is_not_overtaken(start_host: StartHost) -> None:
    host = start_host()
    for s in range(20):
        ids = [
            host.send(
                "context/ingest",
                sessionId=f"new-{s}",
                agentId="a" if n % 2 else None,
                message=TALK.user(f"{n}"),
            )
            for n in range(10)
        ]
        host.wait_all(ids)
        assert [m["content"] for m in history(host, f"new-{s}")] == [f"{n}" for n in range(10)]


def test_truncate_in_the_middle_of_a_pipeline_cuts_what_came_before(host: Host, session: str) -> None:
    for n in range(3):
        host.send("context/ingest", sessionId=session, messageId=f"m{n}", message=TALK.user(f"{n}"))
    cut = host.send("session/truncate", sessionId=session, afterMessageId="m0")
    last = host.send("context/ingest", sessionId=session, messageId="m1", message=TALK.user("another"))
    assert host.wait(cut)["removedMessages"] == 2
    assert host.wait(last)["ingested"]
    assert [m["content"] for m in history(host, session)] == ["0", "another"]


def test_delete_in_the_middle_of_a_pipeline_leaves_what_comes_after(host: Host, session: str) -> None:
    for n in range(5):
        host.send("context/ingest", sessionId=session, message=TALK.user(f"{n}"))
    host.send("session/delete", sessionId=session)
    last = host.send("context/ingest", sessionId=session, message=TALK.user("anew"))
    assert host.wait(last)["turnId"] == "t1"
    assert [m["content"] for m in history(host, session)] == ["anew"]


def asking_host(start_host: StartHost, session: str) -> tuple[Host, int]:
    """A host with a compaction under way that waits for the host's model, and the compaction's id."""
    host = start_host(hostCapabilities=["runtime/complete"], engine="default")
    for n in range(40):
        host.call("context/ingest", sessionId=session, message=TALK.user(f"{n} " + "many words " * 100))
        host.call(
            "context/ingest", sessionId=session, message=TALK.assistant(f"{n} " + "as many words " * 100)
        )
    return host, host.send("context/compact", sessionId=session, tokenBudget=4000, force=True)


def test_a_compaction_that_waits_for_the_host_holds_nobody(start_host: StartHost, session: str) -> None:
    host, compaction = asking_host(start_host, session)
    request = host.wait_asked("runtime/complete")
    assert host.call("context/ingest", sessionId="another", message=TALK.user("hi"))["ingested"]
    assert host.call("context/ingest", sessionId=session, message=TALK.user("meanwhile"))["ingested"]
    assert host.call("context/assemble", sessionId=session, tokenBudget=20_000)["messages"]
    host.answer(request, {"text": "A summary of what was said."})
    while compaction not in host.answers:
        host.until(lambda: compaction in host.answers or bool(host.asked), "no end of the compaction")
        for more in list(host.asked):
            host.answer(host.wait_asked(more["method"]), {"text": "A summary of what was said."})
    assert host.wait(compaction)["ok"]
    assert history(host, session)[-1] == TALK.user("meanwhile")


def test_a_session_that_is_deleted_during_its_compaction_leaves_nothing_behind(
    start_host: StartHost, session: str
) -> None:
    host, compaction = asking_host(start_host, session)
    request = host.wait_asked("runtime/complete")
    assert host.call("session/delete", sessionId=session)["deleted"]
    host.answer(request, {"text": "The needle-in-the-summary was said."})
    while compaction not in host.answers:
        host.until(lambda: compaction in host.answers or bool(host.asked), "no end of the compaction")
        for more in list(host.asked):
            host.answer(host.wait_asked(more["method"]), {"text": "The needle-in-the-summary was said."})
    host.wait_all([compaction])
    assert host.refusal("session/get", sessionId=session).code == 1003
    host.stop()
    kept = b"".join(file.read_bytes() for file in host.state_dir.rglob("*") if file.is_file())
    assert b"needle-in-the-summary" not in kept and b"as many words" not in kept


def test_cancelling_a_waiting_compaction_ends_its_request_to_the_host(
    start_host: StartHost, session: str
) -> None:
    host, compaction = asking_host(start_host, session)
    request = host.wait_asked("runtime/complete")
    host.cancel(compaction)
    assert [r.code for r in host.wait_all([compaction]) if isinstance(r, Refused)] == [CANCELLED]
    host.until(
        lambda: any(
            n["method"] == "$/cancelRequest" and n["params"]["id"] == request["id"]
            for n in host.notifications
        ),
        "the sidecar does not cancel its own request",
    )
    assert len(history(host, session)) == 80


def test_cancelled_requests_that_still_wait_have_no_effect(start_host: StartHost, session: str) -> None:
    host = start_host()
    host.call("context/ingest", sessionId=session, message=TALK.user("first"))
    ids: list[int] = []
    long = [TALK.user(f"imported {n}") for n in range(3000)]
    ids.append(host.send("context/bootstrap", sessionId=session, messages=[TALK.user("first"), *long]))
    waiting = [
        host.send("context/ingest", sessionId=session, message=TALK.user(f"late {n}")) for n in range(50)
    ]
    for id in waiting:
        host.cancel(id)
    codes = [r.code if isinstance(r, Refused) else None for r in host.wait_all(waiting)]
    assert host.wait_all(ids)[0]["importedMessages"] == 3000
    stored = [m["content"] for m in history(host, session) if m["content"].startswith("late")]
    assert stored == [f"late {n}" for n, code in enumerate(codes) if code is None]
    assert set(codes) <= {None, CANCELLED}


@pytest.mark.parametrize(
    "method", ["context/ingest", "context/ingestBatch", "context/afterTurn", "context/bootstrap"]
)
def test_a_cancelled_write_is_stored_and_answered_or_neither(host: Host, session: str, method: str) -> None:
    kept: list[str] = []
    for n in range(60):
        one, two = TALK.user(f"{n} one of this pair"), TALK.assistant(f"{n} two of this pair")
        params = {"message": one} if method == "context/ingest" else {"messages": [one, two]}
        id = host.send(method, sessionId=session, **params)
        if n % 3:
            host.call("session/list", limit=1)
        host.cancel(id)
        (result,) = host.wait_all([id])
        if isinstance(result, Refused):
            assert result.code == CANCELLED
        else:
            kept += [m["content"] for m in (params.get("messages") or [one])]
    stored = [m["content"] for m in history(host, session)] if kept else []
    assert stored == kept


def test_a_bootstrap_that_is_cancelled_halfway_is_imported_whole_or_not_at_all(
    start_host: StartHost, session: str
) -> None:
    host = start_host()
    for n in range(8):
        messages = [TALK.user(f"{n} message {i}") for i in range(2500)]
        id = host.send("context/bootstrap", sessionId=f"{session}-{n}", messages=messages)
        for _ in range(n):
            host.call("session/list", limit=1)
        host.cancel(id)
        (result,) = host.wait_all([id])
        if isinstance(result, Refused):
            assert host.refusal("session/get", sessionId=f"{session}-{n}").code == 1003
        else:
            assert len(exported(host, f"{session}-{n}")) == 2500
