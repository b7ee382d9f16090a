"""Keeps modules of the working directory out of the processes that are started.

`-P` does so for a Python that is started, but for what `PYTHONPATH` itself says: an empty or relative entry
stands for the folder in which somebody happens to type a command.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "PYTHONPATH"


def absolute_path(environ: Mapping[str, str]) -> dict[str, str]:
    """The variable without such entries, to be laid over the environment; empty where there is none."""
    given = environ.get(VARIABLE, "")
    places = given.split(os.pathsep) if given else []
    kept = [place for place in places if Path(place).is_absolute()]
    return {VARIABLE: os.pathsep.join(kept)} if len(kept) < len(places) else {}


def complaint(environ: Mapping[str, str]) -> str | None:
    """What is to be said where the variable has such an entry."""
    if not absolute_path(environ):
        return None
    return (
        f"{VARIABLE} has an empty or relative entry, so that modules of the working directory are run: "
        "write absolute folders only"
    )
