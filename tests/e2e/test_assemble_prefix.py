"""Answers of one epoch extend each other, and the epoch rises where it must and nowhere else."""

import signal
from pathlib import Path
from random import Random

import msgspec
import pytest
from msgspec import Raw

from tests.e2e.agent_host import AgentHost, Assembled
from tests.e2e.conversations import DIALECTS, Speaker
from tests.e2e.judge import exact_tokens, is_synthetic
from tests.e2e.rules import broken_rules

ENGINES = ("full", "default", "recall", "sliding-window")
TURNS = 12


class _LongRun:
    """A session whose host assembles before every model call and changes its budget."""

    def __init__(
        self, host: AgentHost, dialect: str, engine: str, *, hands_list_over: bool, seed: int
    ) -> None:
        self.host = host
        self.dialect = dialect
        self.session = f"{engine}, {'handed over' if hands_list_over else 'stored'}"
        self.hands_list_over = hands_list_over
        self.random = Random(seed)
        self.speaker = Speaker(dialect, seed)
        self.history: list[bytes] = []
        self.base = self.random.choice((1500, 4000))
        self.before: Assembled | None = None
        self.rises = 0

    def turn(self, number: int) -> None:
        """One turn with a tool loop."""
        begin = len(self.history)
        size = self.random.choice((10, 30, 80))
        self._add([self.speaker.user(self.speaker.words(size))])
        for _ in range(self.random.choice((0, 1, 2, 5))):
            self._add(self.speaker.group(size))
        self._add(self.speaker.assistant(self.speaker.words(size)))
        if self.hands_list_over:
            turn = [Raw(message) for message in self.history[begin:]]
            self.host.call(
                "context/commitTurn", sessionId=self.session, advancementKey=f"{number}", messages=turn
            )

    def _add(self, messages: list[bytes]) -> None:
        self.history += messages
        if not self.hands_list_over:
            self.host.ingest(self.session, *messages)
        budget = self.random.choice((self.base, self.base, self.base, self.base * 4 // 3))
        raw = self.history if self.hands_list_over else None
        answer = self.host.assemble(self.session, raw=raw, tokenBudget=budget)
        wrong = broken_rules(self.dialect, budget, self.history, answer, self.before)
        if self.before and answer.epoch != self.before.epoch:
            self.rises += 1
            if self.before.tokens + _at_most(messages) <= budget:
                wrong.append(
                    f"the epoch rose, but {self.before.tokens} and {_at_most(messages)} fit {budget}"
                )
            elif answer.tokens > 0.75 * budget + 1 and _questions(answer) > 1:
                wrong.append(f"cut to {answer.tokens} of {budget} tokens: without slack")
        assert not wrong, (self.session, wrong)
        self.before = answer


def _at_most(messages: list[bytes]) -> int:
    """More tokens than the messages can take."""
    reasoning = sum(len(message) // 2 for message in messages if b'"reasoning"' in message)
    return (
        exact_tokens([msgspec.json.decode(message) for message in messages]) + 40 * len(messages) + reasoning
    )


def _questions(answer: Assembled) -> int:
    return sum(
        message.get("role") == "user" and not is_synthetic(message) and b"tool_result" not in raw
        for raw, message in zip(answer.raw, answer.messages, strict=True)
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_prefix_is_stable_over_long_runs_and_restarts(dialect: str, tmp_path: Path) -> None:
    random = Random(1)
    with AgentHost(tmp_path, dialect=dialect) as host:
        runs: list[_LongRun] = []
        for engine in ENGINES:
            for hands_list_over in (False, True):
                run = _LongRun(host, dialect, engine, hands_list_over=hands_list_over, seed=1)
                host.call("session/configure", sessionId=run.session, engine=engine)
                runs.append(run)
        for number in range(TURNS):
            for run in runs:
                run.turn(number)
            if random.random() < 0.4:
                host.restart(random.choice((signal.SIGTERM, signal.SIGKILL)))
        rises = {run.session: run.rises for run in runs}
        assert all(rises.values()), f"a run is too short to be cut: {rises}"
