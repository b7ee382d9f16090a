"""A whole history is imported in the background: usable meanwhile, told of, cancellable, gone on with."""

import signal
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from tests.bench.corpus import conversation, needle
from tests.e2e.agent_host import AgentHost, Failure, Json
from tests.e2e.coverage import listed

MESSAGES = [message for turn in conversation(750) for message in turn]
LONG = [message for turn in conversation(3000) for message in turn]
TRIES = 20
"""Imports within which one cancellation comes before the end, also where this process has to wait."""
NEXT = b'{"role":"user","content":"And now, on the first day after all that?"}'


def begin(host: AgentHost, messages: list[bytes], token: str = "import", session: str = "s") -> int:
    """Send the import of a history; returns the id of the request."""
    told = [Raw(message) for message in messages]
    return host.send(
        "context/bootstrap", sessionId=session, messages=told, background=True, workDoneToken=token
    )


def reports(host: AgentHost) -> list[Json]:
    """The progress so far, oldest first."""
    return [params["value"] for method, params in host.notified if method == "$/progress"]


def is_storing(host: AgentHost) -> bool:
    return any(str(value.get("message", "")).startswith("storing") for value in reports(host))


def count(host: AgentHost, session: str = "s") -> int:
    return host.call("session/get", sessionId=session)["messageCount"]


def exported(host: AgentHost, session: str = "s") -> list[bytes]:
    """Every stored message."""
    found: list[bytes] = []
    cursor: Json = {}
    while True:
        raw = host.result(host.send("session/export", sessionId=session, **cursor))
        page = msgspec.json.decode(raw, type=dict[str, Raw])
        listed_ = msgspec.json.decode(page["messages"], type=list[dict[str, Raw]])
        found += [bytes(entry["message"]) for entry in listed_]
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": msgspec.json.decode(page["nextCursor"])}


def test_a_history_is_imported_whole_while_the_session_is_read(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless") as host:
        request = begin(host, LONG)
        host.wait_for(lambda: is_storing(host))
        asked = 0
        while not host.has_answered(request):
            answer = host.assemble("s", tokenBudget=8000)
            assert answer.tokens <= 8000
            asked += 1
        done = host.result(request)
        assert asked > 1 and b'"importedMessages":12000' in done
        assert exported(host) == LONG
        assert "importing" not in host.call("session/get", sessionId="s")
        percentages = [value["percentage"] for value in reports(host) if "percentage" in value]
        assert percentages[-1] == 100 and reports(host)[-1]["kind"] == "end"


def test_what_comes_meanwhile_is_stored_behind_the_history(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless") as host:
        request = begin(host, LONG)
        host.wait_for(lambda: is_storing(host))
        running = host.call("session/get", sessionId="s")
        stored = host.send("context/ingest", sessionId="s", message=Raw(NEXT))
        host.result(stored)
        assert host.has_answered(request)
        assert running["importing"] == {"state": "running", "total": len(LONG)}
        assert running["messageCount"] < len(LONG) and exported(host) == [*LONG, NEXT]


def test_imported_messages_are_summarised_without_being_asked_for(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless") as host:
        host.result(begin(host, MESSAGES[:800]))
        host.wait_for(lambda: len(listed(host)) > 15)
        answer = host.assemble("s", tokenBudget=8000)
        assert "[summary " in str(answer.messages)


@pytest.mark.parametrize("before", [0, 40])
def test_a_cancelled_import_leaves_nothing(before: int, tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless") as host:
        for number in range(TRIES):
            session = f"s{number}"
            host.ingest(session, *MESSAGES[:before])
            host.notified.clear()
            request = begin(host, MESSAGES, session=session)
            host.wait_for(lambda: is_storing(host))
            host.cancel(request)
            try:
                host.result(request)
            except Failure as cancelled:
                assert cancelled.code == -32800
                break
            assert exported(host, session) == MESSAGES, "neither all of it nor nothing"
        else:
            pytest.fail("no cancellation came in time")
        if before:
            assert exported(host, session) == MESSAGES[:before]
            assert "importing" not in host.call("session/get", sessionId=session)
        else:
            with pytest.raises(Failure) as unknown:
                count(host, session)
            assert unknown.value.code == 1003
        host.ingest(session, NEXT)
        assert exported(host, session) == [*MESSAGES[:before], NEXT]


def test_an_import_goes_on_after_a_kill(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless") as host:
        begin(host, LONG)
        host.wait_for(lambda: is_storing(host))
        host.restart(signal.SIGKILL)
        left = host.call("session/get", sessionId="s")
        assert 0 < left["messageCount"] < len(LONG)
        assert left["importing"] == {"state": "interrupted", "total": len(LONG)}
        done = host.result(begin(host, LONG, "again"))
        assert f'"importedMessages":{len(LONG) - left["messageCount"]}'.encode() in done
        assert exported(host) == LONG and "importing" not in host.call("session/get", sessionId="s")


def test_the_same_history_again_brings_nothing(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless") as host:
        host.result(begin(host, MESSAGES[:400]))
        assert b'"bootstrapped":false' in host.result(begin(host, MESSAGES[:400]))
        assert b'"importedMessages":8' in host.result(begin(host, MESSAGES[:408]))
        assert count(host) == 408


def test_what_is_no_message_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless") as host:
        with pytest.raises(Failure) as refused:
            host.result(begin(host, [*MESSAGES[:600], b"7"]))
        assert refused.value.code == -32602 and refused.value.data["path"] == "/messages/600"
        with pytest.raises(Failure):
            count(host)


def test_a_history_with_gaps_is_filled_in_its_order(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless") as host:
        host.ingest("s", *MESSAGES[:20], *MESSAGES[40:60])
        host.result(begin(host, MESSAGES[:60]))
        assert exported(host) == MESSAGES[:60]


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_fifty_thousand_messages_are_imported_and_found(tmp_path: Path) -> None:
    messages = [message for turn in conversation(12_500) for message in turn]
    with AgentHost(tmp_path, engine="lossless") as host:
        request = begin(host, messages)
        host.wait_for(lambda: is_storing(host))
        asked = 0
        while not host.has_answered(request):
            host.assemble("s", tokenBudget=32_000)
            asked += 1
        assert count(host) == 50_000 and asked > 10
        for turn in (0, 5000, 12_450):
            shown = host.call(
                "tools/call", sessionId="s", name="context_grep", arguments={"pattern": needle(turn)}
            )
            assert needle(turn) in shown["content"][0]["text"]
        print(f"50,000 messages, {asked} answers meanwhile, {host.cpu_s():.1f} s of processor time")
