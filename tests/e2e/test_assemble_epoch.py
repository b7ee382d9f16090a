"""What raises the context epoch, and what does not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.agent_host import AgentHost
from tests.e2e.conversations import Speaker

Step = Callable[[AgentHost, Speaker, list[str]], object]

KEEPS: dict[str, Step] = {
    "assembling again": lambda host, speaker, ids: host.assemble("s", tokenBudget=4000),
    "a new message": lambda host, speaker, ids: host.ingest("s", speaker.user("more")),
    "a larger budget": lambda host, speaker, ids: host.assemble("s", tokenBudget=5300),
    "a smaller budget that is enough": lambda host, speaker, ids: host.assemble("s", tokenBudget=3000),
    "a prompt": lambda host, speaker, ids: host.assemble("s", tokenBudget=4000, prompt="what now?"),
    "a restart": lambda host, speaker, ids: host.restart(),
    "an explanation": lambda host, speaker, ids: host.call("context/explain", sessionId="s"),
    "a running heartbeat": lambda host, speaker, ids: host.ingest(
        "s", speaker.user("beat"), isHeartbeat=True
    ),
    "another session": lambda host, speaker, ids: host.ingest("t", speaker.user("elsewhere")),
    "disposing": lambda host, speaker, ids: host.call("context/dispose"),
    "a declined compaction": lambda host, speaker, ids: host.call(
        "context/compact", sessionId="s", tokenBudget=50_000
    ),
    "preflight": lambda host, speaker, ids: host.call("context/preflight", sessionId="s", tokenBudget=900),
}


def _heartbeat_leaves(host: AgentHost, speaker: Speaker, ids: list[str]) -> None:
    host.ingest("s", speaker.user("beat"), isHeartbeat=True)
    host.assemble("s", tokenBudget=4000)
    host.ingest("s", speaker.user("a real turn"))


def _configured(**config: object) -> Step:
    return lambda host, speaker, ids: host.call("session/configure", sessionId="s", **config)


RAISES: dict[str, Step] = {
    "another engine": _configured(engine="full"),
    "another setting": _configured(config={"summaryTokens": 700}),
    "truncating": lambda host, speaker, ids: host.call(
        "session/truncate", sessionId="s", afterMessageId=ids[4]
    ),
    "a compaction": lambda host, speaker, ids: host.call("context/compact", sessionId="s", force=True),
    "a much larger budget": lambda host, speaker, ids: host.assemble("s", tokenBudget=90_000),
    "a much smaller budget": lambda host, speaker, ids: host.assemble("s", tokenBudget=500),
    "a leaving heartbeat": _heartbeat_leaves,
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory):
    """One process for all cases, each with a state of its own."""
    with AgentHost(tmp_path_factory.mktemp("epoch"), engine="default") as host:
        yield host


def _session(host: AgentHost) -> tuple[Speaker, list[str], int]:
    """A fresh session `s` of about 1,500 tokens; returns its ids and its epoch."""
    speaker = Speaker("openai", 3)
    host.call("session/delete", sessionId="s")
    host.call("session/configure", sessionId="s", engine="default", config={})
    ids = host.ingest("s", *(message for _ in range(8) for message in speaker.turn(20)))
    answer = host.assemble("s", tokenBudget=4000)
    assert 1200 < answer.tokens < 2800
    return speaker, ids, answer.epoch


@pytest.mark.parametrize("step", KEEPS.values(), ids=KEEPS)
def test_the_epoch_stays_over(step: Step, host: AgentHost) -> None:
    speaker, ids, epoch = _session(host)
    step(host, speaker, ids)
    assert host.assemble("s", tokenBudget=4000).epoch == epoch


@pytest.mark.parametrize("step", RAISES.values(), ids=RAISES)
def test_the_epoch_rises_with(step: Step, host: AgentHost) -> None:
    speaker, ids, epoch = _session(host)
    step(host, speaker, ids)
    assert host.assemble("s", tokenBudget=4000).epoch > epoch


def test_an_edit_by_the_host_raises_the_epoch(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    messages = [message for _ in range(4) for message in speaker.turn()]
    with AgentHost(tmp_path) as host:
        first = host.assemble("s", raw=messages)
        assert host.assemble("s", raw=[*messages, speaker.user("more")]).epoch == first.epoch
        edited = [*messages[:2], speaker.user("something else"), *messages[3:]]
        assert host.assemble("s", raw=edited).epoch > first.epoch


@pytest.mark.parametrize("engine", ["full", "default"])
def test_a_cut_stays_when_the_budget_grows_again(engine: str, tmp_path: Path) -> None:
    speaker = Speaker("openai")
    with AgentHost(tmp_path, engine=engine, config={"recall": {"share": 0}}) as host:
        host.ingest("s", *(message for _ in range(30) for message in speaker.turn()))
        small = host.assemble("s", tokenBudget=2000)
        large = host.assemble("s", tokenBudget=2600)
        assert (large.epoch, large.raw) == (small.epoch, small.raw)
        again = host.assemble("s", tokenBudget=2000)
        assert (again.epoch, again.raw) == (small.epoch, small.raw)


def test_the_epoch_never_falls_where_a_session_is_only_handed_over(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    messages = [message for _ in range(3) for message in speaker.turn()]
    with AgentHost(tmp_path) as host:
        first = host.assemble("s", raw=messages)
        host.restart()
        after = host.assemble("s", raw=[*messages, speaker.user("more")])
        assert after.epoch == first.epoch and after.raw[: len(first.raw)] == first.raw
