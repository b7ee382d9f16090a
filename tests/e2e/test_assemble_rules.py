"""Every answer keeps its budget, is valid, exact and adds up, whatever the history holds."""

from pathlib import Path
from random import Random

import pytest

from tests.e2e.agent_host import AgentHost, Assembled, Failure
from tests.e2e.conversations import DIALECTS, Speaker
from tests.e2e.rules import broken_rules

STEPS = 12


@pytest.mark.parametrize("dialect", DIALECTS)
def test_answers_keep_all_rules_over_broken_histories(dialect: str, tmp_path: Path) -> None:
    with AgentHost(tmp_path, dialect=dialect) as host:
        for engine in ("full", "default", "recall", "sliding-window"):
            for seed in (0, 1):
                session = f"{engine} {seed}"
                host.call("session/configure", sessionId=session, engine=engine)
                _grow(host, session, Speaker(dialect, seed), Random(seed))


def _grow(host: AgentHost, session: str, speaker: Speaker, random: Random) -> None:
    sources: list[bytes] = []
    before: Assembled | None = None
    base = random.choice((600, 2000, 8000))
    for step in range(STEPS):
        new = speaker.wild_turn() if random.random() < 0.6 else speaker.turn()
        if random.random() < 0.1:
            new = [speaker.user(speaker.words(random.choice((1000, 4000))))]
        sources += new
        host.ingest(session, *new)
        for budget in (base,) if random.random() < 0.7 else (base, base * 2, base):
            try:
                answer = host.assemble(session, tokenBudget=budget)
            except Failure as failure:
                assert failure.code == 1002, failure
                budget = failure.data["required"]
                assert budget > failure.data["tokenBudget"]
                answer = host.assemble(session, tokenBudget=budget)
            wrong = broken_rules(speaker.dialect, budget, sources, answer, before)
            assert not wrong, f"{session}, step {step}: {wrong}"
            before = answer


@pytest.mark.parametrize("dialect", DIALECTS)
def test_messages_come_back_byte_for_byte_in_their_order(dialect: str, tmp_path: Path) -> None:
    speaker = Speaker(dialect, 5)
    sources = [message for _ in range(15) for message in speaker.turn()]
    with AgentHost(tmp_path, dialect=dialect) as host:
        host.ingest("s", *sources)
        assert host.assemble("s").raw == sources


def test_chinese_text_never_exceeds_the_budget(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    sources = [speaker.user("數據庫連接超時，請檢查設定檔並重新啟動服務。" * 40) for _ in range(30)]
    with AgentHost(tmp_path, config={"tokens": {"counter": "estimate"}}) as host:
        host.ingest("s", *sources)
        answer = host.assemble("s", tokenBudget=5000)
        assert not broken_rules("openai", 5000, sources, answer)
        assert len(answer.raw) > 1


def test_an_empty_session_list_gives_an_empty_answer(tmp_path: Path) -> None:
    with AgentHost(tmp_path) as host:
        answer = host.assemble("s", raw=[])
        assert answer.raw == [] and answer.tokens == 0
        assert answer.result["composition"] == []


def test_a_budget_that_is_no_positive_integer_is_refused(tmp_path: Path) -> None:
    with AgentHost(tmp_path) as host:
        host.ingest("s", Speaker("openai").user("hello"))
        for budget in (0, -1, 1.5, "many"):
            with pytest.raises(Failure, match="tokenBudget") as refused:
                host.assemble("s", tokenBudget=budget)
            assert refused.value.code == -32602, budget


def test_a_session_that_nobody_knows_is_not_found(tmp_path: Path) -> None:
    with AgentHost(tmp_path) as host, pytest.raises(Failure) as refused:
        host.assemble("nobody", tokenBudget=1000)
    assert refused.value.code == 1003
