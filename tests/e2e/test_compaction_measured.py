"""A compaction heeds what the host has measured."""

import json
from pathlib import Path

import pytest

from tests.bench.corpus import conversation
from tests.e2e.inner_host import InnerHost
from tests.e2e.sidecar_host import Host
from tests.e2e.talk import Talk, turns


@pytest.mark.parametrize("engine", ["full", "default", "sliding-window"])
def test_what_the_host_sends_beside_the_messages_is_taken_off_the_budget(engine: str, tmp_path: Path) -> None:
    with Host(tmp_path, engine=engine) as host:
        messages = turns(Talk("openai"), *range(1, 21))
        host.call("context/ingestBatch", sessionId="s", messages=messages)
        takes = host.call("context/assemble", sessionId="s")["estimatedTokens"]
        about = {"sessionId": "s", "tokenBudget": 2 * takes, "compactionTarget": "budget"}
        assert not host.call("context/compact", **about)["compacted"]
        assert not host.call("context/compact", **about, currentTokenCount=takes // 2)["compacted"]
        assert host.call("context/compact", **about, currentTokenCount=3 * takes)["compacted"]
        after = host.call("context/assemble", sessionId="s", tokenBudget=2 * takes)
        assert after["estimatedTokens"] < takes


def test_without_an_answer_before_the_measure_says_nothing(tmp_path: Path) -> None:
    with Host(tmp_path, engine="full") as host:
        host.call("context/ingestBatch", sessionId="s", messages=turns(Talk("openai"), 1))
        about = {"sessionId": "s", "tokenBudget": 4000, "compactionTarget": "budget"}
        assert not host.call("context/compact", **about, currentTokenCount=90_000)["compacted"]


@pytest.mark.parametrize("engine", ["full", "terse", "default", "sliding-window", "lossless", "recall"])
def test_what_is_compacted_by_force_is_smaller_however_small_it_was(engine: str, tmp_path: Path) -> None:
    host = InnerHost(tmp_path, engine=engine)
    for number in (1, 2, 3, 5, 8, 13):
        session = f"s{number}"
        host.call("context/ingestBatch", sessionId=session, messages=turns(Talk("openai"), *range(number)))
        before = talk_tokens(host, session)
        answer = host.call("context/compact", sessionId=session, force=True, tokenBudget=50_000)
        after = talk_tokens(host, session)
        if answer["compacted"]:
            assert answer["result"]["tokensAfter"] < answer["result"]["tokensBefore"]
            assert after < before
        else:
            assert answer["ok"] and answer["reason"] and after <= before
    host.close()


def talk_tokens(host: InnerHost, session: str, **params: object) -> int:
    """What an answer takes without what engines say in the system prompt about tools and summaries."""
    parts = host.call("context/assemble", sessionId=session, **params)["composition"]
    return sum(part["tokens"] for part in parts if part["kind"] != "system")


@pytest.mark.parametrize("engine", ["full", "terse", "default", "sliding-window", "lossless", "recall"])
@pytest.mark.parametrize("is_asked_again", [True, False])
def test_what_a_compaction_leaves_is_no_less_than_the_next_answer_takes(
    engine: str, is_asked_again: bool, tmp_path: Path
) -> None:
    host = InnerHost(tmp_path, engine=engine)
    messages = [json.loads(message) for turn in conversation(60) for message in turn]
    asked = {"prompt": "What was decided about the gateway in Bergen, ticket OPS-33?"}
    budgets = [(4000, 4000), (8000, 4000), (8000, 8000), (16_000, 8000)]
    compacted = 0
    for number, (budget, compacted_to) in enumerate(budgets):
        session = f"s{number}"
        host.call("context/ingestBatch", sessionId=session, messages=messages)
        host.call("context/assemble", sessionId=session, tokenBudget=budget, **asked)
        done = host.call("context/compact", sessionId=session, tokenBudget=compacted_to, force=True)
        again = asked if is_asked_again else {}
        after = talk_tokens(host, session, tokenBudget=compacted_to, **again)
        compacted += done["compacted"]
        assert not done["compacted"] or after <= done["result"]["tokensAfter"], (budget, compacted_to)
    assert compacted > 1
    host.close()
