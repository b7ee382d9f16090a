"""Whatever a session holds, a budget that its smallest valid answer fits is never refused."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.e2e.conversations import DIALECTS, Speaker
from tests.e2e.inner_host import InnerHost
from tests.e2e.judge import exact_tokens, problems
from tests.e2e.sidecar_host import Params, Refused

ENGINES = ("full", "default", "lossless", "recall", "sliding-window", "terse")
STUB = 80
"""Tokens that a result takes at most in the smallest answer."""
LEEWAY = 20
"""Tokens of a message that a server may count for delimiters and ids."""
OVERFLOW = 1002
_sessions = count(1)


class Step(NamedTuple):
    """What happens before the model is called once more."""

    asks: bool
    """Whether the user says something."""
    words: int
    results: tuple[int, ...]
    """Words of each result of the tools that the model calls then; none where it calls nothing."""
    compacts: bool
    budget: int


few, many = st.integers(1, 40), st.sampled_from([200, 1500, 6000])
steps = st.builds(
    Step,
    asks=st.booleans(),
    words=few | few | st.just(400),
    results=st.lists(few | many, max_size=3).map(tuple),
    compacts=st.integers(0, 7).map(lambda number: number == 0),
    budget=st.sampled_from([300, 700, 1500, 4000, 20_000]),
)
stories = st.lists(steps, min_size=2, max_size=14)


class _Session:
    """A session, and what an answer must hold of it."""

    def __init__(self, host: InnerHost, dialect: str, engine: str) -> None:
        self.host, self.dialect = host, dialect
        self.speaker = Speaker(dialect, seed=7)
        self.id = f"{engine}-{next(_sessions)}"
        self._asked: list[bytes] = []
        self._group: list[bytes] = []
        self._answers: list[bytes] = []
        host.call("session/configure", sessionId=self.id, engine=engine)

    def play(self, step: Step) -> None:
        """Let a step happen, and ask for the context."""
        speaker = self.speaker
        if step.asks or not self._asked:
            if self._asked:
                self._tell(speaker.assistant(speaker.words(step.words)))
            self._asked, self._group, self._answers = [speaker.user(speaker.words(step.words))], [], []
            self._tell(self._asked)
        if step.results:
            calls = [speaker.new_call() for _ in step.results]
            self._group = speaker.assistant("", calls)
            answers = [(call, speaker.words(size)) for call, size in zip(calls, step.results, strict=True)]
            self._answers = speaker.results(answers)
            self._tell([*self._group, *self._answers])
        if step.compacts:
            self.host.call("context/compact", sessionId=self.id, force=True, tokenBudget=step.budget)
        self._assemble(step)

    def _tell(self, messages: list[bytes]) -> None:
        self.host.call(
            "context/ingestBatch", sessionId=self.id, messages=[json.loads(message) for message in messages]
        )

    def _assemble(self, step: Step) -> None:
        budget, smallest = step.budget, self._smallest(len(step.results))
        try:
            answer = self.host.call("context/assemble", sessionId=self.id, tokenBudget=budget)
        except Refused as refused:
            assert refused.code == OVERFLOW, refused
            assert smallest > budget, f"{self.id}: {smallest} tokens fit {budget}: {refused}"
            budget = refused.data["required"]
            answer = self.host.call("context/assemble", sessionId=self.id, tokenBudget=budget)
        assert answer["estimatedTokens"] <= budget
        wrong = problems(self.dialect, answer["messages"])
        assert not wrong, (self.id, wrong)

    def _smallest(self, results: int) -> int:
        """More tokens than the smallest valid answer takes."""
        kept = [*self._asked, *self._group]
        shortened = min(_tokens(self._answers), STUB * max(results, len(self._answers)))
        return _tokens(kept) + shortened + LEEWAY * (len(kept) + len(self._answers))


def _tokens(messages: list[bytes]) -> int:
    decoded: list[Params] = [json.loads(message) for message in messages]
    return exact_tokens(decoded)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, InnerHost]]:
    folder = tmp_path_factory.mktemp("overflows")
    started = {dialect: InnerHost(folder / dialect, message_format=dialect) for dialect in DIALECTS}
    yield started
    for host in started.values():
        host.close()


def _play(examples: int, hosts: dict[str, InnerHost], **more: Any) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        **more,
    )
    @given(st.sampled_from(DIALECTS), st.sampled_from(ENGINES), stories)
    def play(dialect: str, engine: str, story: list[Step]) -> None:
        session = _Session(hosts[dialect], dialect, engine)
        for step in story:
            session.play(step)

    play()


def test_no_budget_is_refused_that_the_smallest_answer_fits(hosts: dict[str, InnerHost]) -> None:
    _play(60, hosts, derandomize=True)


@pytest.mark.soak
def test_no_budget_is_refused_that_the_smallest_answer_fits_in_the_long_run(
    hosts: dict[str, InnerHost],
) -> None:
    _play(3000, hosts)
