"""The engine `sliding-window` keeps its limits, and evicts in blocks instead of at every turn."""

import re
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from tests.e2e.agent_host import AgentHost, Assembled, Json
from tests.e2e.conversations import DIALECTS, Speaker
from tests.e2e.rules import broken_rules

_numbers = count(1)


def _config(**values: object) -> Json:
    return {"plugins": {"entries": {"sliding-window": {"config": values}}}}


ALONE = {"recall": {"share": 0}}
"""The window without what is recalled, which has tests of its own."""


@pytest.fixture(scope="module", params=DIALECTS)
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHost]:
    """One host a dialect that serves all examples."""
    state = tmp_path_factory.mktemp("window")
    with AgentHost(state, dialect=request.param, engine="sliding-window", config=ALONE) as serving:
        yield serving


def _unmarked(answer: Assembled) -> list[bytes]:
    """The messages without the marks of our own text, which differ from store to store."""
    return [re.sub(rb"\[ctx:recall:[^\]]*\]", b"", raw) for raw in answer.raw]


def _turns(turn_of: Mapping[bytes, int], answer: Assembled) -> list[int]:
    """Numbers of the turns that the answer holds something of."""
    return sorted({turn_of[raw] for raw in answer.raw if raw in turn_of})


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10_000),
    budget=st.integers(2500, 6000),
    max_turns=st.none() | st.integers(1, 9),
    max_tokens=st.none() | st.integers(500, 4000),
    low_water=st.sampled_from((0.2, 0.5, 0.8)),
)
def test_the_window_keeps_its_limits_and_its_beginning(
    host: AgentHost,
    seed: int,
    budget: int,
    max_turns: int | None,
    max_tokens: int | None,
    low_water: float,
) -> None:
    session, dialect = f"s{next(_numbers)}", host.options["messageFormat"]
    chosen = {"maxTurns": max_turns, "maxTokens": max_tokens, "lowWater": low_water}
    host.call("session/configure", sessionId=session, config=chosen)
    speaker = Speaker(dialect, seed)
    turn_of: dict[bytes, int] = {}
    before: Assembled | None = None
    for number in range(8):
        for raw in speaker.turn(60, steps=number % 4):
            told = host.call("context/ingest", sessionId=session, message=Raw(raw))
            turn_of[raw] = int(told["turnId"][1:])
        answer = host.assemble(session, tokenBudget=budget)
        assert not (wrong := broken_rules(dialect, budget, list(turn_of), answer, before)), wrong
        turns = _turns(turn_of, answer)
        assert turns == list(range(turns[0], turns[-1] + 1)), "the newest turns, without a gap"
        assert max_turns is None or len(turns) <= max_turns
        if before is not None and answer.epoch > before.epoch and len(turns) > 1:
            left = low_water * min(max_tokens or budget, budget)
            assert answer.tokens <= left or (max_turns and len(turns) <= max(1, int(max_turns * low_water)))
        before = answer


def test_turns_go_in_blocks(tmp_path: Path) -> None:
    speaker = Speaker("openai", 3)
    turn_of: dict[bytes, int] = {}
    sent: list[int] = []
    epochs: list[int] = []
    with AgentHost(tmp_path, engine="sliding-window", config=_config(maxTurns=8, lowWater=0.5)) as host:
        for number in range(20):
            turn = speaker.turn(10, steps=0)
            turn_of |= dict.fromkeys(turn, number)
            host.ingest("s", *turn)
            answer = host.assemble("s", tokenBudget=50_000)
            sent.append(len(_turns(turn_of, answer)))
            epochs.append(answer.epoch)
    assert sent == [1, 2, 3, 4, 5, 6, 7, 8, *([4, 5, 6, 7, 8] * 3)][:20]
    assert len(set(epochs)) == 4, "the beginning changes once a block"


def test_the_window_stays_where_it_is_after_a_restart_and_in_a_fork(tmp_path: Path) -> None:
    speaker = Speaker("openai", 4)
    with AgentHost(tmp_path, engine="sliding-window", config=ALONE) as host:
        host.ingest("s", *(raw for _ in range(20) for raw in speaker.turn(80)))
        first = host.assemble("s", tokenBudget=3000)
        host.restart()
        assert host.assemble("s", tokenBudget=4000).raw == first.raw, "a larger budget keeps the cut"
        host.call("session/fork", sessionId="s", newSessionId="child")
        assert host.assemble("child", tokenBudget=4000).raw == first.raw
        assert len(host.call("session/export", sessionId="child")["messages"]) > len(first.raw)


def test_a_session_may_be_rewound_behind_its_window(tmp_path: Path) -> None:
    speaker = Speaker("openai", 5)
    early = speaker.turn(30)
    with AgentHost(tmp_path, engine="sliding-window") as host:
        ids = host.ingest("s", *early, *(raw for _ in range(20) for raw in speaker.turn(80)))
        host.assemble("s", tokenBudget=3000)
        host.call("session/truncate", sessionId="s", afterMessageId=ids[len(early) - 1])
        assert host.assemble("s", tokenBudget=3000).raw == early


def test_other_engines_take_over_the_whole_history_and_give_it_back(tmp_path: Path) -> None:
    speaker = Speaker("openai", 6)
    messages = [raw for _ in range(12) for raw in speaker.turn(80)]
    whole = {"pruning": {"enabled": False}}
    with AgentHost(tmp_path, engine="sliding-window", config=whole) as host:
        host.ingest("s", *messages)
        window = host.assemble("s", tokenBudget=3000)
        assert 0 < len(window.raw) < len(messages)
        host.call("session/configure", sessionId="s", engine="full")
        assert host.assemble("s", tokenBudget=50_000).raw == messages
        host.call("session/configure", sessionId="s", engine="sliding-window")
        assert host.assemble("s", tokenBudget=3000).raw == window.raw


def test_it_answers_the_same_from_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaker = Speaker("openai", 7)
    messages = [raw for _ in range(12) for raw in speaker.turn(80)]
    file = tmp_path / "config.toml"
    file.write_text('[plugins.entries.sliding-window]\nisolation = "process"\n', encoding="utf-8")
    with AgentHost(tmp_path / "inline", engine="sliding-window") as host:
        host.ingest("s", *messages)
        expected = _unmarked(host.assemble("s", tokenBudget=3000))
    monkeypatch.setenv("CONTEXT_SIDECAR_CONFIG", str(file))
    with AgentHost(tmp_path / "apart", engine="sliding-window") as host:
        host.ingest("s", *messages)
        assert _unmarked(host.assemble("s", tokenBudget=3000)) == expected
        host.ingest("s", *(raw for _ in range(12) for raw in speaker.turn(80)))
        assert host.call("context/compact", sessionId="s", tokenBudget=6000)["compacted"]
