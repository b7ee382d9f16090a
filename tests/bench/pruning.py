"""`python -m tests.bench.pruning TRANSCRIPT...`: what pruning saves, and what it costs the prefix.

Each transcript is replayed with pruning and without it; the replay itself judges whether every answer is
valid for its provider, within the budget and byte for byte.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

COLUMNS = (
    "transcript",
    "format",
    "engine",
    "budget",
    "sent",
    "pruned",
    "saved",
    "prefix",
    "pruned",
    "epochs",
)
COMMAND = (str(Path(sys.executable).with_name("context-sidecar")), "replay")


def main() -> int:
    """Print one row a transcript, engine and budget; 1 where an answer was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.pruning", description=__doc__)
    parser.add_argument("transcripts", nargs="+", type=Path)
    parser.add_argument("--engines", default="full,default")
    parser.add_argument("--budgets", default="4000,16000")
    options = parser.parse_args()
    good = True
    print("| " + " | ".join(COLUMNS) + " | valid |\n" + "|---" * (len(COLUMNS) + 1) + "|")
    for transcript in options.transcripts:
        for engine in options.engines.split(","):
            for budget in options.budgets.split(","):
                whole, pruned = (_replayed(transcript, engine, budget, on) for on in (False, True))
                good &= whole["ok"] and pruned["ok"]
                print(_row(whole, pruned), flush=True)
    return 0 if good else 1


def _replayed(transcript: Path, engine: str, budget: str, enabled: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="sidecar-bench-") as folder:
        config = Path(folder) / "config.toml"
        config.write_text(f"[pruning]\nenabled = {str(enabled).lower()}\n", encoding="utf-8")
        options = ["--engine", engine, "--budget", budget, "--config", str(config)]
        done = subprocess.run(
            [*COMMAND, str(transcript), *options, "--json", "--no-compaction"],
            stdout=subprocess.PIPE,
            check=False,
        )
    return json.loads(done.stdout)


def _row(whole: dict[str, Any], pruned: dict[str, Any]) -> str:
    sent, less = (sum(call["assembledTokens"] for call in each["calls"]) for each in (whole, pruned))
    prefixes = [f"{each['summary']['prefixKept']:.1%}" for each in (whole, pruned)]
    epochs = "/".join(str(each["summary"]["epochs"]) for each in (whole, pruned))
    cells = (
        whole["transcript"],
        whole["messageFormat"],
        whole["engine"],
        str(whole["budget"]),
        str(sent),
        str(less),
        f"{1 - less / max(sent, 1):.1%}",
        *prefixes,
        epochs,
        "yes" if whole["ok"] and pruned["ok"] else "NO",
    )
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
