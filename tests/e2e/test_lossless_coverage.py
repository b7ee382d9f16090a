"""Whatever the budget and the moment: every message is sent, or a summary says something of it."""

import re
import signal
from pathlib import Path
from random import Random

import pytest
from msgspec import Raw

from tests.bench.corpus import conversation
from tests.e2e.agent_host import AgentHost
from tests.e2e.conversations import DIALECTS, Speaker
from tests.e2e.coverage import broken_edges, listed, uncovered
from tests.e2e.judge import problems
from tests.e2e.rules import broken_rules

BUDGETS = (4000, 6000, 10_000, 20_000, 32_000, 64_000, 128_000)
SMALL_LEAVES = {
    "plugins": {"entries": {"lossless": {"config": {"leafSourceTokens": 800, "leafTokens": 160}}}}
}


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_history_without_any_summary_is_covered_at_once(budget: int, tmp_path: Path) -> None:
    messages = [message for turn in conversation(120) for message in turn]
    with AgentHost(tmp_path, engine="lossless") as host:
        ids = host.ingest("s", *messages)
        answer = host.assemble("s", tokenBudget=budget)
        assert uncovered(host, ids, messages, answer) == []
        assert not broken_rules("openai", budget, messages, answer)


def long_run(state: Path, turns: int, *, switches: float, compactions: float, ends: float) -> None:
    """A session that grows turn by turn; shares of the turns bring another budget, a compaction, an end."""
    random = Random(3)
    messages: list[bytes] = []
    ids: list[str] = []
    budget, before, kept, followed = 32_000, None, 0, 0
    with AgentHost(state, engine="lossless", config=SMALL_LEAVES) as host:
        for number, turn in enumerate(conversation(turns)):
            ids += host.ingest("s", *turn)
            messages += turn
            switched = random.random() < switches
            if switched:
                budget = random.choice(BUDGETS[:4])
            if random.random() < compactions:
                host.call("context/compact", sessionId="s", tokenBudget=budget)
            if random.random() < ends:
                host.restart(random.choice((signal.SIGKILL, signal.SIGTERM)))
            answer = host.assemble("s", tokenBudget=budget)
            assert uncovered(host, ids, messages, answer) == [], f"turn {number}, budget {budget}"
            assert not broken_rules("openai", budget, messages, answer, before)
            if before is not None and not switched:
                followed += 1
                kept += answer.raw[: len(before.raw)] == before.raw
            before = answer
            host.call("context/afterTurn", sessionId="s", tokenBudget=budget)
        assert not broken_edges(listed(host))
        assert max(node["depth"] for node in listed(host)) >= 2
    print(f"{turns} turns, the prefix was kept in {100 * kept / followed:.1f} % of those without a switch")


def test_a_long_run_is_covered_at_every_moment(tmp_path: Path) -> None:
    long_run(tmp_path, 100, switches=0.1, compactions=0.05, ends=0.03)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_thousand_turns_are_covered_at_every_moment(tmp_path: Path) -> None:
    long_run(tmp_path, 2000, switches=0.03, compactions=0.02, ends=0.02)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_answer_is_valid_in_every_dialect(dialect: str, tmp_path: Path) -> None:
    speaker = Speaker(dialect, 4)
    messages: list[bytes] = []
    before = None
    with AgentHost(tmp_path, dialect=dialect, engine="lossless", config=SMALL_LEAVES) as host:
        for number in range(60):
            turn = speaker.wild_turn(40) if number % 3 == 0 else speaker.turn(60)
            host.ingest("s", *turn)
            messages += turn
            answer = host.assemble("s", tokenBudget=6000)
            assert not problems(dialect, answer.messages)
            assert not broken_rules(dialect, 6000, messages, answer, before)
            before = answer
            host.call("context/afterTurn", sessionId="s", tokenBudget=6000)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("seed", [11])
def test_no_summary_stands_for_a_call_without_its_results(dialect: str, seed: int, tmp_path: Path) -> None:
    speaker = Speaker(dialect, seed)
    messages = [m for n in range(70) for m in (speaker.wild_turn(40) if n % 2 else speaker.turn(60, steps=4))]
    places: dict[bytes, set[int]] = {}
    for number, raw in enumerate(messages):
        for call in re.findall(rb'"(call_\d+)"', raw):
            places.setdefault(call, set()).add(number)
    with AgentHost(tmp_path, dialect=dialect, engine="lossless", config=SMALL_LEAVES) as host:
        ids = {message_id: number for number, message_id in enumerate(host.ingest("s", *messages))}
        host.call("context/maintain", sessionId="s")
        leaves = [node for node in listed(host) if not node["depth"]]
        assert len(leaves) > 5 and sum(len(numbers) > 1 for numbers in places.values()) > 20
        for leaf in leaves:
            inside = set(range(ids[leaf["firstMessageId"]], ids[leaf["lastMessageId"]] + 1))
            for call, numbers in places.items():
                assert numbers <= inside or not numbers & inside, (call, numbers, leaf["nodeId"])


def test_one_endless_tool_loop_is_summarised(tmp_path: Path) -> None:
    speaker = Speaker("openai", 5)
    messages = [speaker.user("Go on until it works, ticket OPS-77.")]
    messages += [message for _ in range(90) for message in speaker.group(60)]
    with AgentHost(tmp_path, engine="lossless", config=SMALL_LEAVES) as host:
        ids = host.ingest("s", *messages)
        done = host.call("context/compact", sessionId="s", tokenBudget=8000)
        assert done["compacted"], done
        answer = host.assemble("s", tokenBudget=8000)
        assert messages[0] in answer.raw and answer.tokens <= 8000
        assert uncovered(host, ids, messages, answer) == []
        assert not broken_rules("openai", 8000, messages, answer)


def test_assembling_ones_own_answer_is_a_fixed_point(tmp_path: Path) -> None:
    messages = [message for turn in conversation(60) for message in turn]
    with AgentHost(tmp_path, engine="lossless") as host:
        host.ingest("s", *messages)
        answer = host.assemble("s", tokenBudget=8000)
        again = host.assemble("s", raw=answer.raw, tokenBudget=8000)
        assert again.raw == answer.raw and again.epoch == answer.epoch


def test_the_hosts_own_list_gets_the_same_summaries(tmp_path: Path) -> None:
    messages = [message for turn in conversation(60) for message in turn]
    with AgentHost(tmp_path, engine="lossless") as host:
        host.ingest("s", *messages)
        answer = host.assemble("s", tokenBudget=8000)
        assert host.assemble("s", raw=messages, tokenBudget=8000).raw == answer.raw
        new = Speaker("openai").user("And now?")
        last = host.assemble("s", raw=[*messages, new], tokenBudget=8000)
        assert last.raw == [*answer.raw, new] and last.epoch == answer.epoch


def test_a_rewind_behind_the_cut_brings_the_messages_back(tmp_path: Path) -> None:
    messages = [message for turn in conversation(60) for message in turn]
    with AgentHost(tmp_path, engine="lossless", config=SMALL_LEAVES) as host:
        ids = host.ingest("s", *messages)
        host.assemble("s", tokenBudget=8000)
        host.call("context/maintain", sessionId="s")
        host.call("session/truncate", sessionId="s", afterMessageId=ids[19])
        assert host.assemble("s", tokenBudget=8000).raw == messages[:20]
        assert not broken_edges(listed(host))
        more = [message for turn in conversation(70, seed=2) for message in turn]
        ids = ids[:20] + host.ingest("s", *more)
        answer = host.assemble("s", tokenBudget=8000)
        assert uncovered(host, ids, messages[:20] + more, answer) == []


def test_messages_put_in_later_are_covered_too(tmp_path: Path) -> None:
    messages = [message for turn in conversation(80) for message in turn]
    late = messages[100:120]
    with AgentHost(tmp_path, engine="lossless", config=SMALL_LEAVES) as host:
        early = messages[:100] + messages[120:]
        host.ingest("s", *early)
        host.assemble("s", tokenBudget=8000)
        host.call("context/maintain", sessionId="s")
        host.call("context/bootstrap", sessionId="s", messages=[Raw(message) for message in messages])
        ids = [str(m["messageId"]) for m in _exported(host)]
        assert len(ids) == len(messages) and late
        answer = host.assemble("s", tokenBudget=8000)
        assert uncovered(host, ids, messages, answer) == []


def _exported(host: AgentHost) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    page = host.call("session/export", sessionId="s")
    while True:
        found += page["messages"]
        if "nextCursor" not in page:
            return found
        page = host.call("session/export", sessionId="s", cursor=page["nextCursor"])
