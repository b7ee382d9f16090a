"""A host that sends without pause, and holds what is stored against what was acknowledged."""

import random
import select
import time
from typing import Any

from tests.e2e.sidecar_host import LIMIT_S, Host, Refused, exported, result_of
from tests.e2e.talk import Talk

TALK = Talk("openai")
SESSIONS = 6
MOST_OPEN = 200
UNAVAILABLE = 1006


class Recorder:
    """Pipelines messages into many sessions, and remembers what was acknowledged."""

    def __init__(self, host: Host, seed: int, name: str = "s") -> None:
        self.host = host
        self.random = random.Random(f"{seed} {name}")
        self.acknowledged: dict[str, list[str]] = {f"{name}{n}": [] for n in range(SESSIONS)}
        self.sent: dict[str, list[str]] = {session: [] for session in self.acknowledged}
        self.refused = 0
        """Requests that were answered with 1006: nobody knows whether they are stored."""
        self._count = 0
        self._open: dict[int, tuple[str, list[str]]] = {}

    def run_until_killed(self) -> None:
        """Send for a random while, then kill the process at once."""
        self.send_for_a_while()
        self.send_some()
        self.host.kill()
        self.host.read_rest()
        self._collect()
        self._open.clear()

    def send_some(self) -> None:
        """Send a burst without looking at what is answered."""
        for _ in range(self.random.randint(0, 60)):
            self._send()

    def send_for_a_while(self) -> None:
        """Send bursts at random, now and then after a pause in which the process indexes."""
        wanted = self.count() + self.random.choice([0, 20, 100, 300])
        deadline = time.monotonic() + LIMIT_S
        while self.count() <= wanted:
            assert time.monotonic() < deadline, "nothing is acknowledged"
            for _ in range(min(self.random.randint(1, 12), MOST_OPEN - len(self._open))):
                self._send()
            pause_s = self.random.choice([0.001] * 15 + [0.08])
            select.select([self.host.process.stdout], [], [], pause_s)
            self.host.pump()
            self._collect()

    def count(self) -> int:
        """How many messages were acknowledged."""
        return sum(map(len, self.acknowledged.values()))

    def settle(self) -> None:
        """Wait until everything that was sent is answered; 1006 is an answer that may be repeated."""
        deadline = time.monotonic() + 2 * LIMIT_S
        while self._open:
            assert time.monotonic() < deadline, f"{len(self._open)} requests are not answered"
            next_one = next(iter(self._open))
            self.host.until(lambda: next_one in self.host.answers, "no answer")  # noqa: B023
            self._collect()

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
        self._look_for_one()

    def _look_for_one(self) -> None:
        """A message that was acknowledged is found by its words, whatever the index had got to."""
        session = self.random.choice([name for name, texts in self.acknowledged.items() if texts])
        text = self.random.choice(self.acknowledged[session])
        found = self.host.call(
            "tools/call",
            sessionId=session,
            name="context_search",
            arguments={"mode": "search", "query": text},
        )
        assert text in found["content"][0]["text"], f"{text!r} is not found"

    def _send(self) -> None:
        session = self.random.choice(list(self.acknowledged))
        texts = [f"{session} message {self._count + n}" for n in range(self.random.choice([1, 1, 1, 3]))]
        self._count += len(texts)
        self.sent[session] += texts
        messages = [TALK.user(text) for text in texts]
        how = self.random.choice(["ingest", "ingestBatch", "commitTurn"])
        params: dict[str, Any] = {"sessionId": session}
        if how == "ingest" and len(messages) == 1:
            id = self.host.send("context/ingest", **params, message=messages[0])
        elif how == "commitTurn":
            id = self.host.send("context/commitTurn", **params, advancementKey=texts[0], messages=messages)
        else:
            id = self.host.send("context/ingestBatch", **params, messages=messages)
        self._open[id] = (session, texts)

    def _collect(self) -> None:
        for id in [id for id in self._open if id in self.host.answers]:
            session, texts = self._open.pop(id)
            try:
                result_of(self.host.answers.pop(id))
            except Refused as refused:
                assert refused.code == UNAVAILABLE and refused.data["retryable"], refused
                self.refused += 1
            else:
                self.acknowledged[session] += texts
