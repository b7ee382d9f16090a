"""A sidecar that is killed while it compacts loses no message, leaves no orphan, and goes on where it was."""

import re
import signal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.bench.corpus import conversation
from tests.e2e.agent_host import AgentHost, Json
from tests.e2e.coverage import broken_edges, listed, uncovered
from tests.model_server import ModelServer

BUDGET = 8000
CONDENSED_TOKENS = 900
"""Summaries that take less together are put side by side without a model."""
ROUND = 25
"""Kills of one session, so that reading it whole stays short."""


class Killer:
    """Answers as a model does, and kills the sidecar at a call that was chosen before."""

    def __init__(self) -> None:
        self.host: AgentHost | None = None
        self.calls_left = -1

    def __call__(self, request: Json, number: int) -> str | None:
        """The script of the model server."""
        self.calls_left -= 1
        if self.calls_left == 0 and self.host is not None:
            self.host.kill()
            return None
        shown = str(request["messages"][-1]["content"])
        details = list(dict.fromkeys(re.findall(r"src/[\w/.]+|OPS-\d+", shown)))[:8]
        return f"Summary {number} by the model: {', '.join(details)}."


def config(server: ModelServer) -> Json:
    model = {"baseUrl": server.url, "name": "scripted", "retries": 0, "maxCalls": 100_000}
    lossless = {"leafSourceTokens": 600, "leafTokens": 120, "modelCalls": 100_000}
    return {"model": model, "plugins": {"entries": {"lossless": {"config": lossless}}}}


def kill_again_and_again(state: Path, times: int, seed: int) -> None:
    random, killer = Random(seed), Killer()
    with ModelServer(killer) as server:
        for start in range(0, times, ROUND):
            turns = conversation(10_000, seed + start)
            folder = state / str(start)
            with AgentHost(folder, engine="lossless", config=config(server)) as host:
                killer.host = host
                stored: list[bytes] = []
                ids: list[str] = []
                for _ in range(min(ROUND, times - start)):
                    for _ in range(random.randint(4, 12)):
                        turn = next(turns)
                        ids += host.ingest("s", *turn)
                        stored += turn
                    compact_until_killed(host, killer, random)
                    check(host, ids, stored)
                killer.calls_left = -1
                settle(host)


def compact_until_killed(host: AgentHost, killer: Killer, random: Random) -> None:
    """Begin a compaction and end the process somewhere in it."""
    method = random.choice(("context/compact", "context/compact", "context/afterTurn"))
    killer.calls_left = random.randint(1, 4) if random.random() < 0.5 else -1
    host.send(
        method, sessionId="s", tokenBudget=BUDGET, **({} if method.endswith("Turn") else {"force": True})
    )
    try:
        for _ in range(random.randint(0, 60)):
            host.call("engine/list")
    except (AssertionError, OSError):
        pass  # killed by the model's call meanwhile
    killer.calls_left = -1
    host.restart(signal.SIGKILL)


def check(host: AgentHost, ids: list[str], stored: list[bytes]) -> None:
    """Everything is there, every summary has its sources, and an answer covers it all."""
    assert host.call("session/get", sessionId="s")["messageCount"] == len(stored)
    nodes = listed(host)
    assert not broken_edges(nodes)
    place = {message_id: number for number, message_id in enumerate(ids)}
    for node in nodes:
        count = place[node["lastMessageId"]] - place[node["firstMessageId"]] + 1
        assert node["messageCount"] == count, "a summary is none of the messages that it names"
    answer = host.assemble("s", tokenBudget=BUDGET)
    assert answer.tokens <= BUDGET and uncovered(host, ids, stored, answer) == []


def settle(host: AgentHost) -> None:
    """The forest grows to the newest messages, and a model writes what it owes of what is sent."""
    done = host.call("context/compact", sessionId="s", tokenBudget=BUDGET, force=True)
    for _ in range(200):
        before: list[Any] = [(node["nodeId"], node["quality"]) for node in listed(host)]
        host.call("context/maintain", sessionId="s", tokenBudget=BUDGET)
        if [(node["nodeId"], node["quality"]) for node in listed(host)] == before:
            break
    if done["compacted"]:
        nodes = {node["nodeId"]: node for node in listed(host)}
        shown = [node["nodeId"] for node in done["result"]["details"]["nodes"]]
        lasting = [nodes[node_id] for node_id in shown if node_id[0] == "n"]
        assert all(is_paid(node, nodes) for node in lasting), "a debt that is not paid"


def is_paid(node: Json, nodes: dict[str, Json]) -> bool:
    """Whether a model wrote the summary, or what it was made of stands in it unshortened."""
    sources = [nodes[source] for source in node["sources"]]
    as_they_are = bool(sources) and sum(source["tokens"] for source in sources) <= CONDENSED_TOKENS
    return node["quality"] == "model" or (as_they_are and all(is_paid(s, nodes) for s in sources))


def test_kills_during_compaction_lose_nothing(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, 4, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_hundred_kills_during_compaction_lose_nothing(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, 200, seed=2)
