"""Leaves tests out whose programs this machine lacks, which one table at the end of the run tells."""

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

LEFT_OUT = "left out without "
"""What the reason of every test begins with that is left out; the program and why it is missing follow."""
_NOTED = Path(__file__).parent.parent / ".tools" / "missing"


def program(name: str, group: str | None = None) -> str:
    """The path of a program; a test without it is left out, as one of the group of tests for `group`."""
    return shutil.which(name) or leave_out(group or name)


def leave_out(group: str) -> NoReturn:
    """Leave out the test that runs, since the program that a group of tests is named after is missing."""
    reason = f"{LEFT_OUT}{group}: {_why(group)}"
    if os.environ.get("EVERY_GROUP"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def _why(group: str) -> str:
    """What `.ci/setup` noted."""
    lines = _NOTED.read_text().splitlines() if _NOTED.exists() else []
    noted = dict(line.split("\t", 1) for line in lines if "\t" in line)
    return noted.get(group, f"it is not installed; .ci/setup {group} installs it")


def table(reasons: list[str]) -> list[str]:
    """The groups that were left out, by the reasons of their tests: how many tests each has, and why."""
    counts: dict[tuple[str, str], int] = {}
    for reason in reasons:
        _, begins, rest = reason.partition(LEFT_OUT)
        if begins:
            group, _, why = rest.partition(": ")
            counts[group, why] = counts.get((group, why), 0) + 1
    if not counts:
        return []
    width = max(len(group) for group, _ in counts)
    rows = [f"{group:{width}}  {count:5}  {why}" for (group, why), count in sorted(counts.items())]
    return [f"{'group':{width}}  tests  why it did not run", *rows]
