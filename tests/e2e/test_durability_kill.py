"""What was acknowledged is there after the process was killed, once and in order."""

from pathlib import Path

import apsw
import pytest

from tests.e2e.conftest import StartHost
from tests.e2e.kill_recorder import TALK, Recorder
from tests.e2e.sidecar_host import Host, exported, result_of

ROUND = 25
"""Kills after which other sessions are written to, so that reading them all stays short."""


def kill_again_and_again(state_dir: Path, times: int, seed: int) -> None:
    acknowledged = 0
    host = Host(state_dir, engine="default")
    try:
        for start in range(0, times, ROUND):
            recorder = Recorder(host, seed, f"round{start}-")
            for _ in range(min(ROUND, times - start)):
                recorder.run_until_killed()
                host.restart(kill=True)
                recorder.check()
            acknowledged += recorder.count()
    finally:
        host.close()
    print(f"{times} kills, {acknowledged} messages acknowledged")
    assert acknowledged > times
    connection = apsw.Connection(str(state_dir / "context.db"))
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


def test_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "state", 6, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_five_hundred_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "state", 500, seed=2)


def test_the_end_of_input_finishes_what_was_received(start_host: StartHost, session: str) -> None:
    host = start_host()
    ids = [
        host.send("context/ingest", sessionId=f"{session}-{n % 5}", message=TALK.user(f"{n}"))
        for n in range(400)
    ]
    host.end_input()
    assert host.drain() == 0
    assert all(result_of(host.answers.pop(id))["ingested"] for id in ids)


def test_sigterm_finishes_what_was_received(start_host: StartHost, session: str) -> None:
    host = start_host()
    ids = [
        host.send("context/ingest", sessionId=f"{session}-{n % 5}", message=TALK.user(f"{n}"))
        for n in range(400)
    ]
    host.until(lambda: ids[0] in host.answers, "no answer")
    host.terminate()
    assert host.drain() == 0
    answered = [id for id in ids if id in host.answers]
    assert ids[: len(answered)] == answered
    stored = 0
    host.restart(kill=True)
    for n in range(5):
        stored += len(exported(host, f"{session}-{n}"))
    assert stored == len(answered)


def test_a_kill_between_two_commits_leaves_keys_and_messages_together(
    start_host: StartHost, session: str
) -> None:
    host = start_host()
    for n in range(5):
        ids = [
            host.send(
                "context/commitTurn",
                sessionId=session,
                advancementKey=f"{n}-{k}",
                messages=[TALK.user(f"{n}-{k}"), TALK.assistant(f"reply {n}-{k}")],
            )
            for k in range(30)
        ]
        host.until(lambda ids=ids, n=n: ids[n * 5] in host.answers, "no answer")
        host.restart(kill=True)
        for k in range(30):
            turn = [TALK.user(f"{n}-{k}"), TALK.assistant(f"reply {n}-{k}")]
            host.call("context/commitTurn", sessionId=session, advancementKey=f"{n}-{k}", messages=turn)
    stored = [entry["message"]["content"] for entry in exported(host, session)]
    assert stored == [text for n in range(5) for k in range(30) for text in (f"{n}-{k}", f"reply {n}-{k}")]
