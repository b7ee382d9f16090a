"""A compaction heeds what the host has measured."""

from pathlib import Path

import pytest

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
