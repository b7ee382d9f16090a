"""What a server holds in memory follows its limits in bytes, not the number or the size of sessions."""

import random
import time
from pathlib import Path

import pytest
from msgspec import Raw, json

from tests.e2e.agent_host import AgentHost, Failure

MIB = 1 << 20
BOUND = 350 * MIB
"""Resident memory with the default limits, whatever hosts send."""
SOAK_S = 20 * 60


def transcript(size: int, *, each: int, name: str) -> list[bytes]:
    """A conversation of `size` bytes in messages of `each`, the last one the user's."""
    messages: list[bytes] = []
    for number in range(size // each | 1):
        role = "assistant" if number % 2 else "user"
        text = f"{name} {number} " + "plain words " * (each // 12)
        messages.append(json.encode({"role": role, "content": text[:each]}))
    return messages


def shown_once(host: AgentHost, sessions: range, size: int, each: int, budget: int = 1_000_000) -> None:
    """Assemble once in each session, from a transcript of its own that is never stored."""
    for number in sessions:
        raw = transcript(size, each=each, name=f"s{number}")
        host.assemble(f"s{number}", raw=raw, tokenBudget=budget)


@pytest.mark.parametrize(("engine", "budget"), [("legacy", 1_000_000), ("full", 1_000_000), ("full", 20_000)])
def test_sessions_that_were_used_once_leave_no_more_than_the_cache_may_take(
    tmp_path: Path, engine: str, budget: int
) -> None:
    with AgentHost(tmp_path, engine=engine, config={"limits": {"cacheBytes": 4 * MIB}}) as host:
        shown_once(host, range(4), MIB, 2000, budget)
        before = host.resident_bytes()
        shown_once(host, range(4, 16), MIB, 2000, budget)
        assert host.resident_bytes() - before < 12 * MIB


def test_a_base_that_gave_way_is_unknown_and_the_answer_is_whole(tmp_path: Path) -> None:
    limits = {"limits": {"cacheBytes": 0}}
    with AgentHost(tmp_path, engine="full", capabilities=["assembleDelta"], config=limits) as host:
        raw = transcript(1000, each=100, name="s")
        first = host.assemble("s", raw=raw, tokenBudget=10_000)
        shown_once(host, range(2), 1000, 100)
        again = host.assemble("s", raw=raw, tokenBudget=10_000, previousResultId=first.id)
        assert again.edits is None
        assert again.raw == first.raw
        assert again.epoch == first.epoch


def test_a_base_from_before_a_restart_is_unknown(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="full", capabilities=["assembleDelta"]) as host:
        raw = transcript(1000, each=100, name="s")
        ids = {host.assemble(session, raw=raw).id for session in ("a", "b", "a")}
        host.restart()
        after = [host.assemble(session, raw=raw, previousResultId=id) for session in ("a", "b") for id in ids]
        assert len(ids) == 3
        assert all(answer.edits is None and answer.raw == raw for answer in after)
        assert not ids & {answer.id for answer in after}


def test_explaining_an_older_answer_needs_no_timeline_of_its_own(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="full") as host:
        raw = transcript(500, each=100, name="s")
        host.ingest("s", *raw)
        older = [host.assemble("s", tokenBudget=budget).id for budget in (4000, 5000, 6000, 7000)]
        for id in older:
            decisions = host.call("context/explain", sessionId="s", resultId=id)["decisions"]
            assert [each["decision"] for each in decisions] == ["sent"] * len(raw)


@pytest.mark.soak
@pytest.mark.parametrize(("count", "size", "each"), [(40, MIB, 100), (60, 5 * MIB, 2000)])
@pytest.mark.parametrize("engine", ["legacy", "default"])
def test_many_large_sessions_stay_within_the_bound(
    tmp_path: Path, engine: str, count: int, size: int, each: int
) -> None:
    with AgentHost(tmp_path, engine=engine) as host:
        for number in range(count):
            shown_once(host, range(number, number + 1), size, each)
            assert host.resident_bytes() < BOUND


@pytest.mark.soak
def test_large_requests_in_a_row_stay_within_the_bound(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="default") as host:
        raw = [Raw(message) for message in transcript(5 * MIB, each=20_000, name="x")]
        for start in range(0, 300, 20):
            sessions = [f"s{number}" for number in range(start, start + 20)]
            ids = [host.send("context/assemble", sessionId=session, messages=raw) for session in sessions]
            assert {_code(host, id) for id in ids} <= {0, 1007}
        assert host.resident_bytes(peak=True) < BOUND


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["legacy", "default"])
def test_a_request_of_100_mb_succeeds_alone(tmp_path: Path, engine: str) -> None:
    with AgentHost(tmp_path, engine=engine) as host:
        raw = transcript(100 * MIB, each=200_000, name="big")
        assert host.assemble("big", raw=raw, tokenBudget=100_000).raw


@pytest.mark.soak
def test_a_long_run_of_mixed_traffic_becomes_flat(tmp_path: Path) -> None:
    chance, shown = random.Random(1), {f"s{number}": list[bytes]() for number in range(200)}
    sampled: list[tuple[float, int]] = []
    with AgentHost(tmp_path, engine="default") as host:
        began = time.monotonic()
        while (passed := time.monotonic() - began) < SOAK_S:
            session = f"s{min(int(chance.expovariate(1 / 40)), 199)}"
            history = shown[session]
            if len(history) > 60:
                history.clear()
                host.call("session/delete", sessionId=session)
            size = chance.choice([200, 2_000, 20_000, 60_000])
            turn = transcript(2 * size, each=size, name=f"{session} {passed}")[:2]
            history.append(turn[0])
            host.assemble(session, raw=history, tokenBudget=chance.choice([16_000, 32_000, 100_000]))
            history.append(turn[1])
            if chance.random() < 0.7:
                messages = [Raw(message) for message in turn]
                host.call(
                    "context/commitTurn", sessionId=session, advancementKey=f"{passed}", messages=messages
                )
            if not sampled or passed - sampled[-1][0] >= 10:
                sampled.append((passed, host.resident_bytes()))
    settled = [held for passed, held in sampled if passed >= SOAK_S / 4]
    assert max(settled) - settled[0] < 40 * MIB
    assert max(held for _, held in sampled) < BOUND


def _code(host: AgentHost, id: int) -> int:
    try:
        host.result(id)
    except Failure as refused:
        return refused.code
    return 0
