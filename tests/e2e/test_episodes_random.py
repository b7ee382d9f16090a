"""Whatever hosts do to their sessions, every turn becomes one episode, and none becomes two."""

import signal
from pathlib import Path
from random import Random

import pytest

from tests.e2e.agent_host import AgentHost, Json
from tests.e2e.episode_sessions import both, flush, lines, say, until_none_wait

ON: Json = {"episodes": {"enabled": True}}
STEPS = 40


class _Host:
    """Sessions that are told, rewound, forked, killed and handed from engine to engine."""

    def __init__(self, host: AgentHost, seed: int) -> None:
        self.host = host
        self.random = Random(seed)
        self.said: dict[str, list[str]] = {"s0": []}
        self.count = 0

    def step(self) -> None:
        session = self.random.choice(list(self.said))
        known = bool(self.said[session])
        match self.random.randrange(9):
            case 0 if known:
                self.host.call("session/truncate", sessionId=session, afterMessageId=self._one_of(session))
            case 1 if known and len(self.said) < 4:
                child = f"s{len(self.said)}"
                self.host.call(
                    "session/fork", sessionId=session, newSessionId=child, atMessageId=self._one_of(session)
                )
                self.said[child] = []
            case 2 if self.count % 4 == 0:
                self.host.restart(self.random.choice((signal.SIGKILL, signal.SIGTERM)))
            case 3:
                engine = self.random.choice(("default", "sliding-window"))
                self.host.call("session/configure", sessionId=session, engine=engine)
            case 4 if known:
                self.host.assemble(session, tokenBudget=self.random.choice((300, 4000)))
            case 5 if known:
                flush(self.host, session)
            case _:
                self.count += 1
                text = f"thought number {self.count}"
                say(self.host, text, session)
                self.said[session].append(text)

    def _one_of(self, session: str) -> str:
        """The answer that ends some turn of the session."""
        messages = self.host.call("session/export", sessionId=session)["messages"]
        return self.random.choice(messages[1::2])["messageId"]


@pytest.mark.parametrize("seed", range(4))
def test_every_turn_is_handed_over_once(seed: int, tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="default", config=ON) as host:
        told = _Host(host, seed)
        for _ in range(STEPS):
            told.step()
        say(host, "the last one", "s0")
        flush(host, "s0")
        until_none_wait(host)
        found: dict[str, list[str]] = {session: [] for session in told.said}
        for episode in lines(tmp_path / "episodes.jsonl"):
            found[episode["sessionId"]] += [message["text"] for message in episode["messages"]]
    told.said["s0"].append("the last one")
    assert found == {session: both(*texts) for session, texts in told.said.items()}
