"""`python -m tests.bench.stores`: measures stores of growing size beside plain SQLite tables.

Everything is processor time, of the server as well where the store is PostgreSQL. Behind each value stands
its ratio to the plain tables of the same size: one table with an index, filled 256 rows a commit, and
SQLite's own full-text index, which ranks every match.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.bench.store_measures import (
    FILE,
    INGEST,
    LAST_50,
    ON,
    RATIO,
    SEARCHES,
    Shape,
    Values,
    acknowledgement,
    measure,
)

FLOOR = "plain tables"
SHAPES = {
    "10k": Shape(10_000),
    "100k": Shape(100_000),
    "1m": Shape(1_000_000),
    "10kx100": Shape(1_000_000, 10_000),
    "1kx100": Shape(100_000, 1_000),
}
DEFAULT_SIZES = ["10k", "100k", "1kx100"]
SEARCH_MS = {"sqlite": 10.0, "postgres": 50.0}
"""What any search of one session may take; one of all sessions twice as much."""
FLAT = 1.2
"""How much dearer ingest and the newest messages may be in the longest session than in the shortest."""
MOST_FILE = {"sqlite": 2.6, "postgres": 3.2}
"""Room, times the text."""
MOST_WITH_SEARCH = 1.15
ACKNOWLEDGEMENT = "acknowledgement"


class Goal(NamedTuple):
    """What should hold, and what was measured."""

    about: str
    value: float
    bound: float

    def __str__(self) -> str:
        verdict = "met" if self.value <= self.bound else "MISSED"
        return f"{verdict}: {self.about} is {self.value:.3g} (at most {self.bound:g})"


Found = dict[str, dict[str, Values]]
"""By size, then by store."""


def main() -> int:
    """Measure the sizes and stores that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.stores", description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=list(SHAPES), default=DEFAULT_SIZES)
    parser.add_argument("--kinds", nargs="+", choices=list(SEARCH_MS), default=list(SEARCH_MS))
    parser.add_argument(
        "--rounds", type=int, default=5, help="rounds, of which the median counts (default 5)"
    )
    parser.add_argument("--no-floor", action="store_true", help="leave the plain tables out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers to this file")
    parser.add_argument(
        "--folder", type=Path, help="where the stores are made (default: the temporary folder)"
    )
    options = parser.parse_args()
    system = f"python {platform.python_version()}, {platform.platform()}"
    print(f"{system}, {os.cpu_count()} cores, load {os.getloadavg()}")
    results: dict[str, Found] = {}
    for kind in options.kinds:
        found: Found = {}
        for size in options.sizes:
            with tempfile.TemporaryDirectory(prefix="sidecar-bench-", dir=options.folder) as folder:
                found[size] = measure(
                    SHAPES[size], kind, Path(folder), options.rounds, floor=not options.no_floor
                )
            print(f"\n## {kind}, {SHAPES[size].name} messages\n\n{table(found[size])}", flush=True)
        with tempfile.TemporaryDirectory(prefix="sidecar-bench-", dir=options.folder) as folder:
            found[ACKNOWLEDGEMENT] = acknowledgement(kind, Path(folder), options.rounds)
        print(f"\n## {kind}, until the last of 3,000 answers\n\n{table(found[ACKNOWLEDGEMENT])}\n")
        for goal in goals(kind, found):
            print(goal)
        results[kind] = found
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


def table(found: dict[str, Values]) -> str:
    """A Markdown table: the medians of each store, with the ratio to the plain tables behind each."""
    names = list(found)
    lines = ["| | " + " | ".join(names) + " |", "| --- |" + " ---: |" * len(names)]
    floor = found.get(FLOOR)
    for metric in next(iter(found.values())):
        cells = [_cell(metric, found[name][metric], floor if name != FLOOR else None) for name in names]
        unit = "" if " x " in metric else ", us"
        lines.append(f"| {metric}{unit} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def goals(kind: str, found: Found) -> list[Goal]:
    """How the goals were met by what was measured."""
    listed: list[Goal] = []
    found = dict(found)
    answered = found.pop(ACKNOWLEDGEMENT)
    listed.append(Goal("ingest with search on against off", answered[ON][RATIO], MOST_WITH_SEARCH))
    long = [size for size in found if SHAPES[size].sessions == 1]
    short, longest = long[:1], long[-1:]
    for metric in (INGEST, LAST_50) if len(long) > 1 else ():
        ratio = found[longest[0]][kind][metric] / found[short[0]][kind][metric]
        listed.append(Goal(f"{metric} of {longest[0]} messages against {short[0]}", ratio, FLAT))
    for size, stores in found.items():
        values = stores[kind]
        slowest = max(SEARCHES, key=lambda name, values=values: values[name])
        about = f"the slowest search of {size}, {slowest}, in milliseconds"
        most = SEARCH_MS[kind] * (1 if SHAPES[size].sessions == 1 else 2)
        listed.append(Goal(about, values[slowest] / 1000, most))
        listed.append(Goal(f"the room for {size} against the text", values[FILE], MOST_FILE[kind]))
    return listed


def _cell(metric: str, value: float, floor: Values | None) -> str:
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return shown if floor is None or not floor[metric] else f"{shown} ({value / floor[metric]:.2g}x)"


if __name__ == "__main__":
    sys.exit(main())
