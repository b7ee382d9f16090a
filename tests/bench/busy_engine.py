"""`python -m tests.bench.busy_engine`: what a broken engine costs the sessions of another engine.

One session is served by `full`. Its answers are timed while nothing else runs, and while an engine from
outside misbehaves: it computes for ten seconds in plain Python, takes all the memory that it may have, or
ends its process again and again. Each in a process of its own, and the first one also in the sidecar's.
Rounds take turns, so that a loaded machine slows both alike. `shadow` is timed with pauses, in which the
second engine is asked the same, request by request beside a sidecar without one.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tests.e2e.sidecar_host import Host
from tests.engine_gallery import configured, tell

GOAL = 1.5
OTHER = "other"
PAUSE_S = 0.05
KINDS = ("keeps_busy", "allocates", "ends_process")


def main() -> int:
    """Print the figures; 1 where the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.busy_engine", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=400, help="in each half of a round")
    parser.add_argument("--only", choices=(*KINDS, "shadow"), action="append")
    options = parser.parse_args()
    kept = True
    for kind in options.only or (*KINDS, "shadow"):
        ratios = [_round(kind, number, options.requests) for number in range(1, options.rounds + 1)]
        ratio = median(ratios)
        kept &= ratio <= GOAL
        verdict = "kept" if ratio <= GOAL else "missed"
        print(f"{kind}: p95 with / without: median {ratio:.2f} (aim: at most {GOAL}, {verdict})", flush=True)
    _inline()
    return 0 if kept else 1


def _round(kind: str, number: int, requests: int) -> float:
    if kind == "shadow":
        return _shadowed(number, requests)
    with _host("process") as host:
        calm = _p95(_times(host, requests))
        trouble = _Trouble(host, kind)
        beside = _p95(_times(host, requests, trouble.go_on))
    return _told(kind, number, calm, beside, str(trouble))


def _shadowed(number: int, requests: int) -> float:
    plugins = {"shadow": {"engine": "gallery"}}
    without: list[float] = []
    beside: list[float] = []
    with _host("process") as plain, _host("process", config={"plugins": plugins}) as host:
        for _ in range(requests):
            threading.Event().wait(PAUSE_S)
            without += _times(plain, 1)
            beside += _times(host, 1)
        compared = host.call("engine/doctor")["shadow"]["compared"]
    return _told("shadow", number, _p95(without), _p95(beside), f"({compared} compared)")


def _told(kind: str, number: int, calm: float, beside: float, how: str) -> float:
    figures = f"p95 {calm * 1000:.2f} ms without, {beside * 1000:.2f} ms with"
    print(f"{kind}, round {number}: {figures} {how}", flush=True)
    return beside / calm


class _Trouble:
    """Requests that break the engine, one behind the other."""

    def __init__(self, host: Host, kind: str) -> None:
        self._host = host
        self._kind = kind
        self._made = 0
        self._id = -1
        self.go_on()

    def __str__(self) -> str:
        return f"({self._made} calls of it)"

    def go_on(self) -> None:
        """Ask again once the call before was answered."""
        if self._id < 0 or self._id in self._host.answers:
            session = f"bad {self._kind} 1"
            self._id = self._host.send("context/compact", sessionId=session)
            self._made += 1


def _inline() -> None:
    with _host("inline") as host:
        calm = _p95(_times(host, 100))
        host.send("context/compact", sessionId="bad keeps_busy 1")
        print(f"inline: p95 {calm * 1000:.2f} ms without, {_times(host, 1)[0] * 1000:.0f} ms with")


@contextmanager
def _host(isolation: str, **options: Any) -> Generator[Host]:
    with tempfile.TemporaryDirectory(prefix="sidecar-bench-") as folder:
        host = configured(Path(folder), isolation, "compact = 60000", **options)
        with host:
            _prepared(host)
            yield host


def _prepared(host: Host) -> None:
    host.call("session/configure", sessionId=OTHER, engine="full")
    tell(host, OTHER)
    for kind in KINDS:
        tell(host, f"bad {kind} 1")
    _times(host, 50)


def _times(host: Host, requests: int, between: Callable[[], None] = lambda: None) -> list[float]:
    taken: list[float] = []
    for _ in range(requests):
        between()
        began = time.perf_counter()
        host.call("context/assemble", sessionId=OTHER, tokenBudget=2000)
        taken.append(time.perf_counter() - began)
    return taken


def _p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


if __name__ == "__main__":
    sys.exit(main())
