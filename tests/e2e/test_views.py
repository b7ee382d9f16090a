"""Budgets that are far from each other do not disturb each other's answers, whatever happens in between."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.e2e.agent_host import AgentHost, Assembled, Failure
from tests.e2e.conversations import Speaker
from tests.e2e.judge import exact_tokens
from tests.e2e.rules import broken_rules

NARROWING = Path(__file__).parents[1] / "engines" / "narrowing"
BUILT_IN = ("full", "default", "sliding-window", "recall", "lossless", "terse")
OUTSIDE = ("narrowing-stored", "narrowing-memory")
LARGE, SMALL = 20_000, 2_000


def _host(state: Path, engine: str) -> AgentHost:
    """A sidecar whose configuration file knows the engines from outside, each in a process of its own."""
    config = state / "config.toml"
    config.write_text(f'[plugins.load]\npaths = ["{NARROWING}"]\n')
    return AgentHost(state / "state", engine=engine, environment={"CONTEXT_SIDECAR_CONFIG": str(config)})


def _talk(host: AgentHost, speaker: Speaker, turns: int, session: str = "s") -> list[bytes]:
    messages = [message for _ in range(turns) for message in speaker.turn(40)]
    host.ingest(session, *messages)
    return messages


@pytest.fixture
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentHost]:
    with _host(tmp_path, request.param) as host:
        yield host


every_engine = pytest.mark.parametrize("host", (*BUILT_IN, *OUTSIDE), indirect=True)
built_in = pytest.mark.parametrize("host", BUILT_IN, indirect=True)


@every_engine
def test_a_side_question_costs_the_next_large_answer_nothing(host: AgentHost) -> None:
    speaker = Speaker("openai")
    _talk(host, speaker, 60)
    first = host.assemble("s", tokenBudget=LARGE)
    side = host.assemble("s", tokenBudget=SMALL)
    second = host.assemble("s", tokenBudget=LARGE)
    assert second.raw == first.raw
    assert first.epoch < side.epoch < second.epoch
    if host.options["engine"] == "terse":
        return  # a new turn moves one into its log
    host.ingest("s", speaker.user("and now?"))
    third = host.assemble("s", tokenBudget=LARGE)
    assert third.raw[: len(first.raw)] == first.raw and third.epoch == second.epoch


@every_engine
def test_views_survive_a_kill_right_after_an_answer(host: AgentHost) -> None:
    _talk(host, Speaker("openai"), 150)
    first = host.assemble("s", tokenBudget=LARGE)
    host.restart(signal.SIGKILL)
    side = host.assemble("s", tokenBudget=SMALL)
    host.restart(signal.SIGKILL)
    again = host.assemble("s", tokenBudget=LARGE)
    assert again.raw[: len(first.raw)] == first.raw and again.epoch > side.epoch
    host.restart(signal.SIGKILL)
    small = host.assemble("s", tokenBudget=SMALL)
    assert small.raw[: len(side.raw)] == side.raw


@pytest.mark.parametrize("host", (*BUILT_IN, "narrowing-stored"), indirect=True)
def test_a_larger_budget_that_matches_no_view_has_all_its_room(host: AgentHost) -> None:
    _talk(host, Speaker("openai"), 60)
    with_room = host.assemble("s", tokenBudget=LARGE)
    speaker = Speaker("openai")
    _talk(host, speaker, 60, "t")
    host.assemble("t", tokenBudget=SMALL)
    assert len(host.assemble("t", tokenBudget=LARGE).raw) == len(with_room.raw)


@built_in
def test_budgets_that_are_near_each_other_share_a_cut(host: AgentHost) -> None:
    _talk(host, Speaker("openai"), 60)
    planned = host.assemble("s", tokenBudget=4000)
    for budget in (4500, 5300):
        answer = host.assemble("s", tokenBudget=budget)
        assert answer.epoch == planned.epoch, budget
        assert answer.raw[: len(planned.raw)] == planned.raw, budget
    assert host.assemble("s", tokenBudget=5400).epoch > planned.epoch, "less than three quarters"


def test_of_several_views_the_one_used_last_counts(tmp_path: Path) -> None:
    with _host(tmp_path, "full") as host:
        _talk(host, Speaker("openai"), 60)
        large = host.assemble("s", tokenBudget=4000)
        small = host.assemble("s", tokenBudget=2900)
        assert host.assemble("s", tokenBudget=3500).raw == small.raw
        host.assemble("s", tokenBudget=4500)
        assert host.assemble("s", tokenBudget=3500).raw[:1] == large.raw[:1]


def test_the_last_four_views_are_kept(tmp_path: Path) -> None:
    with _host(tmp_path, "full") as host:
        speaker = Speaker("openai")
        _talk(host, speaker, 150)
        answers = {budget: host.assemble("s", tokenBudget=budget) for budget in (2000, 4000, 8000, 16_000)}
        host.ingest("s", speaker.user("more"))
        for budget, before in answers.items():
            assert host.assemble("s", tokenBudget=budget).raw[: len(before.raw)] == before.raw, budget
        host.assemble("s", tokenBudget=1000)
        host.assemble("s", tokenBudget=16_000)
        kept = {row["name"] for row in _state_rows(tmp_path)}
        views = {name.split(".")[1] for name in kept if name.startswith("view.")}
        assert len(views) == 4, "what was kept for the oldest view is gone"


def _state_rows(state: Path) -> list[dict[str, Any]]:
    import apsw

    (file,) = state.glob("**/*.db")
    rows = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY).execute("SELECT name FROM state")
    return [{"name": name} for (name,) in rows]


@built_in
def test_a_compaction_moves_the_view_of_its_budget_and_the_one_that_answered_last(host: AgentHost) -> None:
    _talk(host, Speaker("openai"), 150)
    large = host.assemble("s", tokenBudget=12_800)
    small = host.assemble("s", tokenBudget=9000)
    side = host.assemble("s", tokenBudget=SMALL)
    host.assemble("s", tokenBudget=9000)
    done = host.call("context/compact", sessionId="s", tokenBudget=12_800, force=True)
    assert done["compacted"]
    assert host.assemble("s", tokenBudget=9000).tokens < small.tokens
    assert host.assemble("s", tokenBudget=12_800).tokens < large.tokens
    assert host.assemble("s", tokenBudget=SMALL).raw == side.raw, "a view that nobody asked for has moved"


@built_in
def test_a_host_that_compacts_at_a_budget_it_never_asks_for_gets_smaller_answers(host: AgentHost) -> None:
    _talk(host, Speaker("openai"), 150)
    before = host.assemble("s", tokenBudget=9000)
    done = host.call("context/compact", sessionId="s", tokenBudget=12_800, force=True)
    after = host.assemble("s", tokenBudget=9000)
    assert done["compacted"] and after.tokens < before.tokens and after.epoch > before.epoch


def test_a_refused_budget_leaves_no_view_behind(tmp_path: Path) -> None:
    with _host(tmp_path, "full") as host:
        _talk(host, Speaker("openai"), 60)
        first = host.assemble("s", tokenBudget=LARGE)
        with pytest.raises(Failure):
            host.assemble("s", tokenBudget=5)
        again = host.assemble("s", tokenBudget=LARGE)
        assert (again.epoch, again.raw) == (first.epoch, first.raw)


def test_stubs_of_a_small_view_do_not_show_in_a_large_one(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    call = speaker.new_call()
    result = speaker.results([(call, speaker.words(3000))])
    with _host(tmp_path, "full") as host:
        host.ingest("s", speaker.user("go"), *speaker.assistant("", [call]), *result)
        assert host.assemble("s", tokenBudget=LARGE).raw[-1] == result[0]
        assert host.assemble("s", tokenBudget=500).raw[-1] != result[0]
        assert host.assemble("s", tokenBudget=LARGE).raw[-1] == result[0]


def test_projections_of_a_view_go_on_over_a_side_question(tmp_path: Path) -> None:
    with _host(tmp_path, "full") as host:
        _talk(host, Speaker("openai"), 60)

        def thread(budget: int) -> str:
            answer = host.assemble("s", tokenBudget=budget, projection="codex")
            return answer.result["contextProjection"]["epoch"]

        large = thread(LARGE)
        assert thread(SMALL) != large
        assert thread(LARGE) == large


def test_another_engine_ends_the_continuation_in_every_view(tmp_path: Path) -> None:
    with _host(tmp_path, "full") as host:
        _talk(host, Speaker("openai"), 60)
        threads = {}
        for turn in range(2):
            for budget in (LARGE, SMALL):
                answer = host.assemble("s", tokenBudget=budget, projection="codex")
                epoch = answer.result["contextProjection"]["epoch"]
                assert threads.get(budget) != epoch
                threads[budget] = epoch
            if not turn:
                host.call("session/configure", sessionId="s", engine="sliding-window")


def test_an_engine_that_always_moves_on_is_held_to_its_answer_once_only(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    with _host(tmp_path, "last-turns") as host:
        for _ in range(4):
            _talk(host, speaker, 1)
            assert len(_questions(host.assemble("s", tokenBudget=LARGE))) <= 2
        host.assemble("s", tokenBudget=SMALL)
        seen: list[int] = []
        for _ in range(3):
            _talk(host, speaker, 1)
            seen.append(len(_questions(host.assemble("s", tokenBudget=LARGE))))
        assert seen[-1] == 2, seen


def _questions(answer: Assembled) -> list[object]:
    return [message for message in answer.messages if message["role"] == "user"]


STEPS = st.one_of(
    st.sampled_from((900, 1100, 2000, 2600, 6000, 7500, LARGE)),
    st.sampled_from((900, 1100, 2000, 2600, 6000, 7500, LARGE)),
    st.sampled_from(("turn", "SIGTERM", "SIGKILL")),
)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=8, max_size=16), seed=st.integers(0, 1 << 30))
@every_engine
def test_an_answer_goes_on_from_the_last_one_of_its_view(
    host: AgentHost, steps: list[int | str], seed: int
) -> None:
    session, speaker = f"s{seed}-{hash(tuple(map(str, steps)))}", Speaker("openai", seed)
    history = _talk(host, speaker, 30, session)
    views: list[tuple[int, Assembled, int]] = []
    newest: Assembled | None = None
    for step in steps:
        if step == "turn":
            history += _talk(host, speaker, 1, session)
        elif isinstance(step, str):
            host.restart(signal.Signals[step])
        else:
            answer = host.assemble(session, tokenBudget=step)
            wrong = broken_rules("openai", step, history, answer, newest)
            known = next((v for v in views if 4 * min(v[0], step) >= 3 * max(v[0], step)), None)
            if known is not None:
                views.remove(known)
                wrong += _not_continued(host, known[1], answer, history[known[2] :], step)
            views = [(known[0] if known else step, answer, len(history)), *views][:4]
            newest = answer
            assert not wrong, (step, wrong)


def _not_continued(
    host: AgentHost, before: Assembled, answer: Assembled, added: list[bytes], budget: int
) -> list[str]:
    """What is wrong where a view could go on, and did not; `terse` may begin anew with every turn."""
    if answer.raw[: len(before.raw)] == before.raw or (added and host.options["engine"] == "terse"):
        return []
    most = exact_tokens([msgspec.json.decode(raw) for raw in added]) + 40 * len(added)
    if before.tokens + most > budget:
        return []
    return [f"{before.tokens} and {most} tokens fit {budget}, but the answer does not go on"]


def test_the_teaching_of_terse_does_not_come_back_within_a_view(tmp_path: Path) -> None:
    speaker = Speaker("openai")
    with _host(tmp_path, "terse") as host:
        host.ingest("s", speaker.user("word " * 300))
        small = host.assemble("s", tokenBudget=400)
        assert "systemPromptAddition" not in small.result
        large = host.assemble("s", tokenBudget=530)
        assert (large.epoch, large.raw) == (small.epoch, small.raw)
        assert host.assemble("s", tokenBudget=4000).result["systemPromptAddition"]
