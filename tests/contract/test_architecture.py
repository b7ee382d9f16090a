"""ARCHITECTURE.md and CONTRIBUTING.md name files that are there, and walks that requests really take."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")}
NAMED = re.compile(r"`([\w./-]+/|[\w./-]+\.(?:py|md|mjs|toml|lock))`")
ROWS = 25
"""Most rows of "Where do I find": a name that says what a file holds needs none."""


def is_there(name: str) -> bool:
    return (ROOT / name).exists() or (ROOT / "sidecar" / name).exists()


def test_every_file_that_is_named_is_there() -> None:
    for page, text in PAGES.items():
        missing = [name for name in NAMED.findall(text) if "/" in name and not is_there(name)]
        assert missing == [], f"{page} names what is not there"


def test_the_table_of_places_is_short() -> None:
    table = PAGES["ARCHITECTURE.md"].partition("Where do I find")[2].partition("\n## ")[0]
    assert table.count("\n| ") - 2 <= ROWS


def walk(method: str) -> list[str]:
    """The files that a walk names."""
    text = PAGES["ARCHITECTURE.md"].partition(f"**`{method}`**")[2]
    text = re.split(r"\n\*\*`|\n## ", text)[0]
    return [name for name in NAMED.findall(text) if name.endswith(".py")]


def test_every_file_of_the_three_walks_is_one_that_the_request_passes_through() -> None:
    tracer = Path(__file__).with_name("traced_requests.py")
    done = subprocess.run([sys.executable, str(tracer)], capture_output=True, text=True, timeout=120)
    passed: dict[str, list[str]] = json.loads(done.stdout)
    for method, files in passed.items():
        named = walk(method)
        assert len(named) > 3, method
        strange = [name for name in named if name not in files]
        assert strange == [], f"{method} does not pass through these; it passes through {files}"
