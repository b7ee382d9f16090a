"""What was acknowledged is there after the process was killed, once and in order."""

import random
import select
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import StartHost
from tests.e2e.sidecar_host import Host, Refused, exported, result_of
from tests.e2e.talk import Talk

TALK = Talk("openai")
SESSIONS = 6


class Recorder:
    """Pipelines messages into many sessions, and remembers what was acknowledged."""

    def __init__(self, host: Host, seed: int) -> None:
        self.host = host
        self.random = random.Random(seed)
        self.acknowledged: dict[str, list[str]] = {f"s{n}": [] for n in range(SESSIONS)}
        self.sent: dict[str, list[str]] = {name: [] for name in self.acknowledged}
        self._count = 0
        self._open: dict[int, tuple[str, list[str]]] = {}

    def run_until_killed(self) -> None:
        """Send for a random while, then kill the process at once."""
        deadline = time.monotonic() + self.random.uniform(0.02, 0.25)
        while time.monotonic() < deadline:
            for _ in range(self.random.randint(1, 12)):
                self._send()
            select.select([self.host.process.stdout], [], [], 0.001)
            self.host.pump()
            self._collect()
        self.host.kill()
        self.host.read_rest()
        self._collect()
        self._open.clear()

    def check(self) -> None:
        """Hold what is stored against what was acknowledged."""
        for session, acknowledged in self.acknowledged.items():
            try:
                stored = [entry["message"]["content"] for entry in exported(self.host, session)]
            except Refused:
                stored = []
            assert len(stored) == len(set(stored)), f"{session} holds a message twice"
            missing = [text for text in acknowledged if text not in set(stored)]
            assert not missing, f"{session} has lost {missing[:3]}"
            order = {text: place for place, text in enumerate(self.sent[session])}
            places = [order[text] for text in stored]
            assert places == sorted(places), f"{session} is out of order"

    def _send(self) -> None:
        session = self.random.choice(list(self.acknowledged))
        texts = [f"{session} message {self._count + n}" for n in range(self.random.choice([1, 1, 1, 3]))]
        self._count += len(texts)
        self.sent[session] += texts
        messages = [TALK.user(text) for text in texts]
        how = self.random.choice(["ingest", "ingestBatch", "commitTurn"])
        if how == "ingest" and len(messages) == 1:
            id = self.host.send("context/ingest", sessionId=session, message=messages[0])
        elif how == "commitTurn":
            key = texts[0]
            id = self.host.send(
                "context/commitTurn", sessionId=session, advancementKey=key, messages=messages
            )
        else:
            id = self.host.send("context/ingestBatch", sessionId=session, messages=messages)
        self._open[id] = (session, texts)

    def _collect(self) -> None:
        for id in [id for id in self._open if id in self.host.answers]:
            result_of(self.host.answers.pop(id))
            session, texts = self._open.pop(id)
            self.acknowledged[session] += texts


def kill_again_and_again(state_dir: Path, times: int, seed: int) -> None:
    host = Host(state_dir)
    try:
        recorder = Recorder(host, seed)
        for _ in range(times):
            recorder.run_until_killed()
            host.restart(kill=True)
            recorder.check()
        assert sum(map(len, recorder.acknowledged.values())) > times
    finally:
        host.close()


def test_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "state", 6, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_hundred_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path / "state", 100, seed=2)


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
