"""What must not be left out, results too large for any budget, and the error where nothing helps."""

from pathlib import Path

import pytest

from tests.e2e.agent_host import AgentHost, Failure
from tests.e2e.conversations import DIALECTS, Speaker
from tests.e2e.judge import is_synthetic
from tests.e2e.rules import broken_rules


def _giant_result(speaker: Speaker, size: int = 6000, parallel: int = 1) -> list[bytes]:
    """A finished turn, then a question whose tool call has a result of about `size` tokens."""
    calls = [speaker.new_call() for _ in range(parallel)]
    answers = [(call, speaker.words(size)) for call in calls]
    asked = [speaker.user("read it all")]
    return [*speaker.turn(40), *asked, *speaker.assistant("", calls), *speaker.results(answers)]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("engine", ["full", "default", "recall", "sliding-window"])
def test_a_retry_with_what_is_required_succeeds(dialect: str, engine: str, tmp_path: Path) -> None:
    speaker = Speaker(dialect)
    sources = [speaker.system("be brief"), *_giant_result(speaker, parallel=2)]
    with AgentHost(tmp_path, dialect=dialect, engine=engine) as host:
        host.ingest("s", *sources)
        with pytest.raises(Failure) as refused:
            host.assemble("s", tokenBudget=60)
        assert refused.value.code == 1002 and refused.value.data["tokenBudget"] == 60
        required = refused.value.data["required"]
        answer = host.assemble("s", tokenBudget=required)
        assert not broken_rules(dialect, required, sources, answer)
        assert answer.tokens == required, "required is as small as it can be"
        with pytest.raises(Failure):
            host.assemble("s", tokenBudget=required - 1)


def test_required_includes_the_prompt_that_the_host_adds(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    with AgentHost(tmp_path) as host:
        host.ingest("s", speaker.user(speaker.words(300)))
        prompt = speaker.words(200)
        with pytest.raises(Failure) as refused:
            host.assemble("s", tokenBudget=100, prompt=prompt)
        required = refused.value.data["required"]
        assert host.assemble("s", tokenBudget=required, prompt=prompt).tokens < required
        assert required >= 200, "the prompt is the newest user message, and its tokens count"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_giant_result_becomes_a_stub_that_names_its_message(dialect: str, tmp_path: Path) -> None:
    speaker = Speaker(dialect)
    sources = _giant_result(speaker)
    with AgentHost(tmp_path, dialect=dialect) as host:
        ids = host.ingest("s", *sources)
        answer = host.assemble("s", tokenBudget=1500)
        assert not broken_rules(dialect, 1500, sources, answer)
        assert [raw for raw in answer.raw if raw in sources] == sources[:-1], "nothing else has to go"
        assert is_synthetic(answer.messages[-1]) and f"stub:{ids[-1]}:".encode() in answer.raw[-1]


@pytest.mark.parametrize("engine", ["full", "default", "recall", "sliding-window"])
def test_a_stub_stays_one_when_the_budget_grows_and_after_a_restart(engine: str, tmp_path: Path) -> None:
    speaker = Speaker("openai")
    sources = _giant_result(speaker)
    with AgentHost(tmp_path, engine=engine) as host:
        host.ingest("s", *sources)
        small = host.assemble("s", tokenBudget=1500)
        large = host.assemble("s", tokenBudget=2000)
        assert (large.epoch, large.raw) == (small.epoch, small.raw)
        host.ingest("s", *speaker.assistant("done"), speaker.user("next"))
        host.restart()
        after = host.assemble("s", tokenBudget=1500)
        assert after.epoch == small.epoch and after.raw[: len(small.raw)] == small.raw


def test_the_same_result_of_a_later_call_is_not_a_stub(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    text = speaker.words(3000)
    first, second = speaker.new_call(), speaker.new_call()
    with AgentHost(tmp_path) as host:
        host.ingest("s", speaker.user("read"), *speaker.assistant("", [first]))
        host.ingest("s", *speaker.results([(first, text)]))
        assert is_synthetic(host.assemble("s", tokenBudget=1000).messages[-1])
        again = speaker.results([(second, text)])
        host.ingest("s", *speaker.assistant("again", [second]), *again)
        assert host.assemble("s", tokenBudget=50_000).raw[-1] == again[0]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_interrupted_calls_get_stand_ins_and_open_calls_stay_open(dialect: str, tmp_path: Path) -> None:
    speaker = Speaker(dialect)
    lost, found, waiting = (speaker.new_call() for _ in range(3))
    sources = [
        speaker.user("go"),
        *speaker.assistant("", [lost, found]),
        *speaker.results([(found, "here")]),
        speaker.user("what happened?"),
        *speaker.assistant("let me see", [waiting]),
    ]
    with AgentHost(tmp_path, dialect=dialect) as host:
        host.ingest("s", *sources)
        answer = host.assemble("s")
        assert not broken_rules(dialect, 128_000, sources, answer)
        made = [raw for raw in answer.raw if raw not in sources]
        assert len(made) == 1 and b"No result recorded" in made[0] and lost[0].encode() in made[0]
        assert answer.raw[-1] == sources[-1]


def test_a_heartbeat_is_the_newest_user_message_while_it_runs(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    beat = speaker.user("heartbeat: anything to do? " + speaker.words(50))
    with AgentHost(tmp_path) as host:
        for _ in range(10):
            host.ingest("s", *speaker.turn(60))
        host.ingest("s", beat, isHeartbeat=True)
        with pytest.raises(Failure) as refused:
            host.assemble("s", tokenBudget=20)
        assert host.assemble("s", tokenBudget=refused.value.data["required"]).raw == [beat]
