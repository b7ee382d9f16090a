"""An answer does not wait for what goes on behind it: the indexer, checkpoints, searches, episodes."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.messages import text
from sidecar.server import connection
from sidecar.store import open_store
from sidecar.store.buffer import Buffer
from sidecar.store.search.answer import Turn
from sidecar.store.sqlite.store import SQLiteStore
from tests.e2e.inner_host import InnerHost
from tests.stalls import LIMIT_S, Stall, StalledDisk

ENGINES = ["full", "default", "terse", "sliding-window", "lossless", "recall"]
BUDGET = 2_000


@pytest.fixture
def stall() -> Iterator[Stall]:
    stall = Stall()
    yield stall
    stall.let_go.set()


@pytest.fixture
def begin(tmp_path: Path, stall: Stall) -> Iterator[Callable[..., InnerHost]]:
    """Starts a host; what stands still is let go before it ends."""
    hosts: list[InnerHost] = []

    def started(**options: Any) -> InnerHost:
        hosts.append(InnerHost(tmp_path / "host", **options))
        return hosts[-1]

    yield started
    stall.let_go.set()
    for host in hosts:
        host.close()


def converse(host: InnerHost, session: str, turns: int, filler: str = "") -> None:
    for turn in range(turns):
        question = f"Question {turn} about plum number {turn}? {filler}"
        for role, content in (("user", question), ("assistant", f"Plum {turn} is ripe. {'word ' * 60}")):
            message = {"role": role, "content": content}
            host.call("context/ingest", sessionId=session, agentId="a", message=message)


def answer(host: InnerHost, session: str, budget: int = BUDGET) -> list[Any]:
    asked = "Which plum number was ripe?"
    return host.call("context/assemble", sessionId=session, agentId="a", prompt=asked, tokenBudget=budget)[
        "messages"
    ]


def thread_is(name: str) -> bool:
    return threading.current_thread().name.startswith(name)


@pytest.mark.parametrize("engine", ENGINES)
def test_answers_come_while_the_indexer_stands_still(
    engine: str, begin: Callable[..., InnerHost], stall: Stall, monkeypatch: pytest.MonkeyPatch
) -> None:
    searchable = text.searchable

    def stalled(*args: Any) -> Any:
        if thread_is("store-") and not thread_is("store-search"):
            stall.wait()
        return searchable(*args)

    monkeypatch.setattr(text, "searchable", stalled)
    host = begin(engine=engine)
    converse(host, "s", 30)
    assert stall.begun.wait(LIMIT_S)
    for budget in (BUDGET, 5 * BUDGET, BUDGET):
        assert answer(host, "s", budget)
        converse(host, "s", 2)


@pytest.mark.parametrize("engine", ["default", "recall"])
def test_answers_come_while_the_disk_does_not_take_a_checkpoint(
    engine: str, begin: Callable[..., InnerHost], stall: Stall, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = StalledDisk(stall)

    def opened(kind: Any, path: Path, **options: Any) -> SQLiteStore:
        made = open_store(kind, path, **options)
        assert isinstance(made, SQLiteStore)
        made._vfs = disk.name  # pyright: ignore[reportPrivateUsage]
        return made

    monkeypatch.setattr(connection, "open_store", opened)
    host = begin(engine=engine)
    disk.armed = True
    converse(host, "other", 8, "x" * 1_000_000)
    assert stall.begun.wait(LIMIT_S), "no checkpoint was made"
    converse(host, "s", 30)
    for budget in (BUDGET, 5 * BUDGET):
        assert answer(host, "s", budget)


def test_what_is_recalled_does_not_wait_for_searches_of_tools(
    begin: Callable[..., InnerHost], stall: Stall, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out = Turn.carry_out

    def stalled(self: Turn, steps: Any) -> Any:
        if not self.for_answer:
            stall.wait()
        return carry_out(self, steps)

    monkeypatch.setattr(Turn, "carry_out", stalled)
    slots = {"slots": {"memory": "history"}}
    host = begin(engine="recall", config={"plugins": slots, "memory": {"sourceTimeoutMs": 20_000}})
    for session in "stuvwxy":
        converse(host, session, 40)
    arguments = {"mode": "search", "query": "plum"}
    for session in "tuvwxy":
        host.send("tools/call", sessionId=session, agentId="a", name="context_search", arguments=arguments)
    deadline = time.monotonic() + LIMIT_S
    while not stall.begun.is_set():
        assert time.monotonic() < deadline, "nobody searches"
        host.call("session/list")
    messages = answer(host, "s")
    assert any("recall" in str(message) for message in messages), "nothing was recalled"


def test_an_answer_waits_a_moment_at_most_until_earlier_turns_are_buffered(
    begin: Callable[..., InnerHost], stall: Stall, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    push = Buffer.push

    async def stalled(self: Buffer, *args: Any) -> Any:
        await asyncio.to_thread(stall.wait)
        return await push(self, *args)

    monkeypatch.setattr(Buffer, "push", stalled)
    host = begin(engine="default", config={"episodes": {"enabled": True}})
    converse(host, "s", 5)
    assert answer(host, "s")
    assert stall.begun.is_set()
    stall.let_go.set()
    host.call("context/dispose")
    assert "Question 3" in (tmp_path / "host" / "episodes.jsonl").read_text()
