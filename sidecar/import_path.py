"""Keeps modules in the working directory from being imported by child processes.

Python's `-P` option does so except for `PYTHONPATH`, where an empty or relative entry refers to the current
working directory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "PYTHONPATH"


def absolute_path(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment override with such entries removed; empty if there are none."""
    given = environ.get(VARIABLE, "")
    places = given.split(os.pathsep) if given else []
    kept = [place for place in places if Path(place).is_absolute()]
    return {VARIABLE: os.pathsep.join(kept)} if len(kept) < len(places) else {}


def complaint(environ: Mapping[str, str]) -> str | None:
    """A warning if the variable has such an entry, else `None`."""
    if not absolute_path(environ):
        return None
    return (
        f"{VARIABLE} has an empty or relative entry, so modules in the working directory can be imported: "
        "use absolute folders only"
    )
