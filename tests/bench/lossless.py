"""`python -m tests.bench.lossless`: what the engine `lossless` costs, by the length of the history."""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.bench.corpus import chinese_needle, conversation, needle
from tests.e2e.agent_host import AgentHost

SIZES = (1_000, 10_000, 50_000)
SETTLED_MS = 5.0
"""A process that waits and used less processor time than this in half a second has nothing left to do."""
LONGEST_S = 1800.0
"""For what a history of this size needs until all of it is indexed and summarised."""
AIMS = {
    "assemble 32k": 20.0,
    "assemble 128k": 20.0,
    "ingest 4": 4.0,
    "afterTurn": 10.0,
    "words, common": 10.0,
    "words, rare": 10.0,
    "regex, oldest": 100.0,
    "regex, two places": 100.0,
    "size / raw": 2.2,
}
"""At most, at 50,000 messages; milliseconds of processor time but for the size."""
GROWTH = 1.3
"""Assembling at four times the length takes at most so much longer."""


class Figures(dict[str, float]):
    """Figures by name, each told as soon as it is known: a long history takes its time."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def __setitem__(self, name: str, value: float) -> None:
        super().__setitem__(name, value)
        print(f"{name:36} {value:12.2f}{_judged(name, value, self._size)}", flush=True)


class Measured(AgentHost):
    """A sidecar whose processor time is read from the scheduler's counters."""

    def cpu_ms(self) -> float:
        """Milliseconds of processor time of all threads."""
        folder = Path(f"/proc/{self._process.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in folder.iterdir()) / 1e6

    def is_waiting(self) -> bool:
        """Whether no thread wants the processor, be it that none is free for it."""
        folder = Path(f"/proc/{self._process.pid}/task")
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in folder.iterdir()]
        return "R" not in states

    def memory_mb(self) -> float:
        """Resident megabytes."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def settle(self) -> None:
        """Wait until nothing is done in the background any more."""
        until = time.monotonic() + LONGEST_S
        before = self.cpu_ms()
        while time.monotonic() < until:
            time.sleep(0.5)
            now, waits = self.cpu_ms(), self.is_waiting()
            if now - before < SETTLED_MS and waits:
                return
            before = now
        raise TimeoutError("the sidecar does not come to rest")

    def median(self, times: int, work: Callable[[int], object], *, settled: bool = False) -> float:
        """The median of the processor time of so many calls, in milliseconds."""
        taken: list[float] = []
        for number in range(times):
            if settled:
                self.settle()
            before = self.cpu_ms()
            work(number)
            taken.append(self.cpu_ms() - before)
        return statistics.median(taken)

    def tool(self, name: str, **arguments: object) -> dict[str, Any]:
        """The whole answer of a tool."""
        return self.call("tools/call", sessionId="s", name=name, arguments=arguments)


def main() -> int:
    """Measure every size that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.lossless", description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, help="messages (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers to this file")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    results: dict[int, Figures] = {}
    for size in options.sizes:
        print(f"\n## {size} messages, load {os.getloadavg()[0]:.1f}\n", flush=True)
        with tempfile.TemporaryDirectory(prefix="sidecar-bench-") as folder:
            results[size] = figures(Path(folder), size)
    for small, large in zip(options.sizes, options.sizes[1:], strict=False):
        print(f"\n## {large} beside {small}\n")
        for name in ("assemble 32k", "assemble 128k", "ingest 4", "afterTurn", "words, common"):
            print(f"{name:36} {results[large][name] / results[small][name]:12.2f} x")
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


def _judged(name: str, value: float, size: int) -> str:
    aim = AIMS.get(name)
    if aim is None or size > max(SIZES):
        return ""
    return f"   {'holds' if value <= aim else 'MISSED'}, at most {aim:g}"


def figures(folder: Path, size: int) -> Figures:
    """All figures for a history of so many messages."""
    found = Figures(size)
    turns = conversation(size // 4 + 200)
    raw = 0
    with Measured(folder, engine="lossless") as host:
        before = host.cpu_ms()
        for batch in _batches(turns, size):
            raw += sum(map(len, batch))
            host.ingest("s", *batch)
        found["ingest, ms for 1000"] = (host.cpu_ms() - before) / size * 1000
        _cold(host, found)
        before = host.cpu_ms()
        host.call("context/afterTurn", sessionId="s", tokenBudget=128_000)
        host.settle()
        found["summaries, ms for 1000"] = (host.cpu_ms() - before) / size * 1000
        found["resident MB"] = host.memory_mb()
        _turns(host, turns, found)
        _searches(host, found)
        _needles(host, size, found)
        host.settle()
        host.restart()
        found["assemble 32k, after a restart"] = host.median(1, lambda _: _assemble(host, 32_000))
    kept = sum(path.stat().st_size for path in folder.rglob("*") if path.suffix != ".log" and path.is_file())
    found["raw MB"], found["size / raw"] = raw / 1e6, kept / raw
    return found


def _batches(turns: Iterator[list[bytes]], size: int) -> Iterator[list[bytes]]:
    left = size
    while left > 0:
        batch = [message for _ in range(min(500, left // 4 or 1)) for message in next(turns)]
        left -= len(batch)
        yield batch


def _cold(host: Measured, found: Figures) -> None:
    """What the very first answers cost, before there is any summary."""
    for budget in (32_000, 128_000):
        name = f"assemble {budget // 1000}k, nothing summarised"
        found[name] = host.median(1, lambda _, budget=budget: _assemble(host, budget))


def _assemble(host: Measured, budget: int) -> int:
    answer = host.assemble("s", tokenBudget=budget)
    assert answer.tokens <= budget
    return len(answer.raw)


def _turns(host: Measured, turns: Iterator[list[bytes]], found: Figures) -> None:
    """A session at its full length goes on, turn by turn, at two budgets."""
    for budget in (128_000, 32_000):
        name = f"{budget // 1000}k"
        _assemble(host, budget)
        host.settle()
        ingested: list[float] = []
        assembled: list[float] = []
        after: list[float] = []
        behind: list[float] = []
        kept, whole = 0, 0
        previous = host.assemble("s", tokenBudget=budget)
        for _ in range(30):
            turn = next(turns)
            ingested.append(host.median(1, lambda _, turn=turn: host.ingest("s", *turn)))
            host.settle()
            assembled.append(host.median(1, lambda _, budget=budget: _assemble(host, budget)))
            answer = host.assemble("s", tokenBudget=budget)
            kept += answer.raw[: len(previous.raw)] == previous.raw
            whole += 1
            previous = answer
            start = host.cpu_ms()
            host.call("context/afterTurn", sessionId="s", tokenBudget=budget)
            after.append(host.cpu_ms() - start)
            host.settle()
            behind.append(host.cpu_ms() - start)
        found[f"assemble {name}"] = statistics.median(assembled)
        found[f"assemble {name}, dearest of 30"] = max(assembled)
        found[f"afterTurn {name}, with all it starts"] = statistics.median(behind)
        found[f"prefix kept {name}, %"] = 100 * kept / whole
        if budget == 128_000:
            found["ingest 4"] = statistics.median(ingested)
            found["afterTurn"] = statistics.median(after)


def _searches(host: Measured, found: Figures) -> None:
    host.settle()
    for name, tool, arguments in (
        ("words, common", "context_search", {"mode": "relevant", "query": "picture"}),
        ("words, two common", "context_search", {"mode": "relevant", "query": "decision format"}),
        ("words, rare", "context_search", {"mode": "relevant", "query": needle(50)}),
        ("words, by summary", "context_grep", {"pattern": "picture", "kind": "words"}),
        ("literal, oldest", "context_search", {"mode": "search", "query": needle(0)}),
        ("regex, oldest", "context_grep", {"pattern": r"needle-000000-\d+"}),
        ("regex, two places", "context_grep", {"pattern": r"[n]eedl[e]-0000(00|50)-\d+"}),
        ("regex, no help of the index", "context_grep", {"pattern": r"n.e.d.l.e|ne{2}dl[e]-0{6}-"}),
        ("describe", "context_describe", {}),
        ("expand", "context_expand", {"first": 100}),
    ):
        found[name] = host.median(9, lambda _, tool=tool, arguments=arguments: host.tool(tool, **arguments))


def _needles(host: Measured, size: int, found: Figures) -> None:
    """The share of what is hidden that two tools find, each in the right message."""
    wanted: list[tuple[str, int]] = []
    for turn in range(0, size // 4, 50):
        first = 4 * turn + 1
        wanted += [
            (needle(turn), first),
            (needle(turn + 1_000_000), first + 1),
            (chinese_needle(turn), first),
        ]
    searched = grepped = 0
    for text, position in wanted[:: max(len(wanted) // 300, 1)]:
        shown = host.tool("context_search", mode="search", query=text, before=0, after=0)
        searched += f"--- messages {position}-{position} of" in shown["content"][0]["text"]
        groups = host.tool("context_grep", pattern=text)["structuredContent"]["groups"]
        grepped += [m["position"] for group in groups for m in group["matches"]] == [position]
    looked_for = len(wanted[:: max(len(wanted) // 300, 1)])
    found["needles by context_search, %"] = 100 * searched / looked_for
    found["needles by context_grep, %"] = 100 * grepped / looked_for


if __name__ == "__main__":
    sys.exit(main())
