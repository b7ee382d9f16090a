"""Shows on a terminal how far long work has come; says nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from sidecar.cli.printing import console

Progress = Callable[[str, int, int], None]


@contextmanager
def shown_progress(*, quiet: bool = False) -> Generator[Progress]:
    """What is to be told the step, how much of it is done, and how much there is."""
    if quiet or not sys.stderr.isatty():
        yield _say_nothing
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda step, done, total: bar.update(
            task, description=step, completed=done, total=total or None
        )


def _say_nothing(step: str, done: int, total: int) -> None:
    del step, done, total
