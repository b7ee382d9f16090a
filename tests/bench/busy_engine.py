"""`python -m tests.bench.busy_engine`: what a busy engine costs the sessions of another engine.

One session is served by `full`. Its answers are timed while nothing else runs, and while an engine from
outside computes for ten seconds in plain Python: in a process of its own, and in the sidecar's. Rounds take
turns, so that a loaded machine slows both alike.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tests.e2e.sidecar_host import Host
from tests.engine_gallery import configured, tell

GOAL = 1.5
OTHER = "other"


def main() -> int:
    """Print the figures; 1 where the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.busy_engine", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=400, help="in each half of a round")
    options = parser.parse_args()
    ratios = [_round(number, options.requests) for number in range(1, options.rounds + 1)]
    ratio = median(ratios)
    verdict = "kept" if ratio <= GOAL else "missed"
    print(f"isolated: p95 with / without: median {ratio:.2f} (aim: at most {GOAL}, {verdict})")
    _inline()
    return 0 if ratio <= GOAL else 1


def _round(number: int, requests: int) -> float:
    with _host("process") as host:
        calm = _p95(_times(host, requests))
        busy = host.send("context/compact", sessionId="bad keeps_busy 1")
        beside = _p95(_times(host, requests))
        early = " (the engine was done before the end)" if busy in host.answers else ""
    print(f"round {number}: p95 {calm * 1000:.2f} ms without, {beside * 1000:.2f} ms with{early}", flush=True)
    return beside / calm


def _inline() -> None:
    with _host("inline") as host:
        calm = _p95(_times(host, 100))
        host.send("context/compact", sessionId="bad keeps_busy 1")
        print(f"inline: p95 {calm * 1000:.2f} ms without, {_times(host, 1)[0] * 1000:.0f} ms with")


@contextmanager
def _host(isolation: str) -> Generator[Host]:
    with tempfile.TemporaryDirectory(prefix="sidecar-bench-") as folder:
        host = configured(Path(folder), isolation, "compact = 60000")
        with host:
            _prepared(host)
            yield host


def _prepared(host: Host) -> None:
    host.call("session/configure", sessionId=OTHER, engine="full")
    tell(host, OTHER)
    tell(host, "bad keeps_busy 1")
    _times(host, 50)


def _times(host: Host, requests: int) -> list[float]:
    taken: list[float] = []
    for _ in range(requests):
        began = time.perf_counter()
        host.call("context/assemble", sessionId=OTHER, tokenBudget=2000)
        taken.append(time.perf_counter() - began)
    return taken


def _p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


if __name__ == "__main__":
    sys.exit(main())
