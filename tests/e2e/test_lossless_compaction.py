"""Compactions of `lossless` end, whatever the model does, and are mended once it does its work again."""

import re
import time
from pathlib import Path

import pytest
from aiohttp import web
from msgspec import json

from tests.bench.corpus import conversation
from tests.client_kit import run_cli
from tests.e2e.agent_host import LIMIT_S, AgentHost, Json
from tests.e2e.coverage import broken_edges, listed, uncovered
from tests.model_server import ModelServer, Script

BUDGET = 8000
MESSAGES = [message for turn in conversation(60) for message in turn]


def good(request: Json, number: int) -> str:
    """A short summary with details of what it was shown."""
    shown = str(request["messages"][-1]["content"])
    details = list(dict.fromkeys(re.findall(r"src/[\w/.]+|OPS-\d+", shown)))[:8]
    return f"Summary {number} by the model: {', '.join(details)}."


def garbage(request: Json, number: int) -> str:
    return "lorem ipsum dolor sit amet" * (number % 7 + 1)


def empty(request: Json, number: int) -> str:
    return ""


def too_long(request: Json, number: int) -> str:
    return str(request["messages"][-1]["content"]) * 2


def errors(request: Json, number: int) -> web.Response:
    return web.Response(status=500)


def no_json(request: Json, number: int) -> web.Response:
    return web.Response(body=b"<html>")


def never(request: Json, number: int) -> None:
    return None


FAULTS = [garbage, empty, too_long, errors, no_json, never]


def config(server: ModelServer, *, timeout_ms: int = 10_000, **own: object) -> Json:
    lossless = {"leafSourceTokens": 800, "leafTokens": 160, **own}
    model = {"baseUrl": server.url, "name": "scripted", "retries": 0, "timeoutMs": timeout_ms}
    return {"model": {**model, "pauseMs": 1, "maxCalls": 1000}, "plugins": entries(lossless)}


def entries(lossless: Json) -> Json:
    return {"entries": {"lossless": {"config": lossless}}}


def receipts(done: Json) -> Json:
    return done["result"]["details"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_compaction_ends_at_its_target_whatever_the_model_does(fault: Script, tmp_path: Path) -> None:
    with (
        ModelServer(fault) as server,
        AgentHost(tmp_path, engine="lossless", config=config(server, timeout_ms=400)) as host,
    ):
        ids = host.ingest("s", *MESSAGES)
        done = host.call("context/compact", sessionId="s", tokenBudget=BUDGET)
        assert done["compacted"] and done["result"]["tokensAfter"] <= BUDGET // 2
        receipt = receipts(done)
        assert receipt["modelSummaries"] == 0 and receipt["fallbackSummaries"] > 0
        assert len(server.requests) <= 2 * receipt["fallbackSummaries"]
        answer = host.assemble("s", tokenBudget=BUDGET)
        assert answer.tokens <= BUDGET and uncovered(host, ids, MESSAGES, answer) == []
        again = host.call("context/compact", sessionId="s", tokenBudget=BUDGET)
        assert not again["compacted"] and "within the target" in again["reason"]


def test_summaries_are_redone_once_the_model_answers_again(tmp_path: Path) -> None:
    with ModelServer(errors) as server:
        options = config(server, modelPauseMs=1)
        with AgentHost(tmp_path, engine="lossless", config=options) as host:
            host.ingest("s", *MESSAGES)
            owed = receipts(host.call("context/compact", sessionId="s", tokenBudget=BUDGET))[
                "fallbackSummaries"
            ]
            assert owed and {node["quality"] for node in listed(host)} == {"deterministic"}
            before = {node["nodeId"] for node in listed(host)}
            server.script = good
            host.restart()
            written: list[Json] = []
            while len(written) < owed:
                host.call("context/maintain", sessionId="s", tokenBudget=BUDGET)
                found = [node for node in listed(host) if node["quality"] == "model"]
                assert len(found) > len(written), host.errors()
                written = found
            assert {node["nodeId"] for node in listed(host)} >= before, "a redo meets its earlier self"
            assert all("by the model" in node["text"] for node in written)


def test_the_breaker_and_the_spend_guard_are_told_in_the_log(tmp_path: Path) -> None:
    many = {"leafSourceTokens": 400, "leafTokens": 64, "fanIn": 32}
    with ModelServer(errors) as server:
        with AgentHost(tmp_path / "a", engine="lossless", config=config(server, **many)) as host:
            host.ingest("s", *MESSAGES)
            receipt = receipts(host.call("context/compact", sessionId="s", tokenBudget=BUDGET))
            assert receipt["fallbackSummaries"] > 3 and len(server.requests) == 3
            assert "status 500" in host.errors() and "too many consecutive failures" in host.errors()
        server.script, server.requests = good, []
        with AgentHost(
            tmp_path / "b", engine="lossless", config=config(server, modelCalls=2, **many)
        ) as host:
            host.ingest("s", *MESSAGES)
            receipt = receipts(host.call("context/compact", sessionId="s", tokenBudget=BUDGET))
            assert receipt["modelSummaries"] == len(server.requests) == 2
            assert receipt["fallbackSummaries"] > 0 and "limit on calls is reached" in host.errors()


def test_where_nothing_is_left_that_is_said(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless") as host:
        host.ingest("s", json.encode({"role": "user", "content": "word " * 3000}))
        done = host.call("context/compact", sessionId="s", tokenBudget=3500, force=True)
        assert not done["compacted"] and "nothing left to compact" in done["reason"]


def test_beyond_the_soft_threshold_the_end_of_a_turn_waits_for_nobody(tmp_path: Path) -> None:
    with (
        ModelServer(never) as server,
        AgentHost(tmp_path, engine="lossless", config=config(server, compactAt=0.5)) as host,
    ):
        fill(host, 0.7)
        before = host.assemble("s", tokenBudget=BUDGET)
        host.call("context/afterTurn", sessionId="s", tokenBudget=BUDGET)
        until = time.monotonic() + LIMIT_S
        while not server.requests and time.monotonic() < until:
            host.call("session/get", sessionId="s")
        assert server.requests
        assert host.assemble("s", tokenBudget=BUDGET).raw == before.raw, "the model has not answered yet"


def test_beyond_the_hard_threshold_the_end_of_a_turn_waits_for_room_and_no_model(tmp_path: Path) -> None:
    with (
        ModelServer(never) as server,
        AgentHost(tmp_path, engine="lossless", config=config(server) | {"recall": {"share": 0}}) as host,
    ):
        ids = fill(host, 1.5)
        host.call("context/afterTurn", sessionId="s", tokenBudget=BUDGET)
        assert ("session/changed", "compacted") in [(n, p.get("reason")) for n, p in host.notified]
        answer = host.assemble("s", tokenBudget=BUDGET)
        assert answer.tokens <= BUDGET // 2 + 200
        assert uncovered(host, ids, MESSAGES[: len(ids)], answer) == [] and not broken_edges(listed(host))


def fill(host: AgentHost, share: float) -> list[str]:
    """Ingest until the messages take so much of the budget."""
    ids: list[str] = []
    wanted = BUDGET * share
    while host.call("context/preflight", sessionId="s", tokenBudget=BUDGET)["estimatedTokens"] < wanted:
        ids += host.ingest("s", *MESSAGES[len(ids) : len(ids) + 4])
    return ids


def test_a_receipt_names_what_was_left_out(tmp_path: Path) -> None:
    rule = json.encode({"role": "user", "content": "Always call the ledger by its number, KX-4471."})
    with AgentHost(tmp_path, engine="lossless", config={"recall": {"share": 0}}) as host:
        host.ingest("s", rule, *MESSAGES)
        done = host.call("context/compact", sessionId="s", tokenBudget=2000, force=True)
        kinds = [each["kind"] for each in receipts(done)["leftOut"]]
        order = ["instruction", "commitment", "decision"]
        assert kinds == sorted(kinds, key=order.index)
        shown = done["result"]["summary"]
        assert all(each["text"] not in shown for each in receipts(done)["leftOut"])
        assert "KX-4471" in shown or "KX-4471" in receipts(done)["leftOut"][0]["text"]


def test_receipts_are_listed_also_after_a_restart(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless") as host:
        host.ingest("s", *MESSAGES)
        assert not host.call("session/summaries", sessionId="s").get("receipts")
        done = [
            receipts(host.call("context/compact", sessionId="s", tokenBudget=budget, force=True))
            for budget in (BUDGET, BUDGET // 2)
        ]
        host.restart(engine="full")
        assert host.call("session/summaries", sessionId="s")["receipts"] == done


def test_the_command_line_shows_receipts(tmp_path: Path) -> None:
    with AgentHost(tmp_path, engine="lossless", namespace="default") as host:
        host.ingest("s", *MESSAGES)
        done = host.call("context/compact", sessionId="s", tokenBudget=BUDGET, force=True)["result"]
    table = run_cli("sessions", "receipts", "s", state_dir=tmp_path)
    assert f"{done['tokensBefore']} to {done['tokensAfter']}" in table.stdout, table.stderr
    told = run_cli("sessions", "receipts", "s", "--json", state_dir=tmp_path)
    assert json.decode(told.stdout)["receipts"] == [done["details"]]


@pytest.mark.parametrize("budget", [4000, 8000])
def test_wishes_for_a_forced_compaction_reach_the_model_where_one_summary_stands_for_all(
    budget: int, tmp_path: Path
) -> None:
    with (
        ModelServer(good) as server,
        AgentHost(tmp_path, engine="lossless", config={"model": config(server)["model"]}) as host,
    ):
        host.ingest("s", *(message for turn in conversation(240) for message in turn))
        host.assemble("s", tokenBudget=budget)
        done = host.call(
            "context/compact",
            sessionId="s",
            tokenBudget=budget,
            force=True,
            customInstructions="Dwell on the heliotrope.",
        )
        assert done["compacted"]
        assert any("Dwell on the heliotrope." in json.encode(r).decode() for r in server.requests)
        answer = host.assemble("s", tokenBudget=budget)
        assert any(b"by the model" in raw for raw in answer.raw)
