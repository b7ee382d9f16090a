"""`python -m tests.bench`: measures the sidecar beside a C echo and a Node server, and prints ratios."""

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

from tests.bench.measures import MEASURES
from tests.bench.report import medians, table, verdicts
from tests.bench.servers import Bench


def main() -> int:
    """Run the measures that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers to this file")
    parser.add_argument("--rounds", type=int, default=7, help="how often the servers take turns (default 7)")
    parser.add_argument(
        "--only", action="append", choices=list(MEASURES), help="measure only this; repeatable"
    )
    parser.add_argument("--node", help="the Node to measure (default: one that has node:sqlite)")
    options = parser.parse_args()
    results: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="sidecar-bench-") as folder:
        # An installed package has its byte code written; a checkout may be told not to write it.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        bench = Bench(Path(folder), options.node)
        machine = {
            "python": platform.python_version(),
            "node": bench.node_version(),
            "system": platform.platform(),
            "cores": os.cpu_count(),
            "load": os.getloadavg(),
        }
        print(", ".join(f"{name} {value}" for name, value in machine.items()))
        for name in options.only or MEASURES:
            rounds = MEASURES[name](bench, options.rounds)
            found = verdicts(name, rounds)
            about = " ".join((MEASURES[name].__doc__ or "").split())
            print(f"\n## {name}\n\n{about}\n\n{table(rounds)}\n")
            for goal in found:
                print(
                    f"{goal['verdict']}: {goal['server']}, {goal['metric']} is {goal['ratio']}x"
                    f" {goal['base']} (at best {goal['ambitious']}, at most {goal['bound']})"
                )
            results[name] = {"medians": medians(rounds), "goals": found, "rounds": rounds}
    if options.json is not None:
        options.json.write_text(json.dumps({"machine": machine, "measures": results}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
