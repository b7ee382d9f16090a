"""Writes results and progress: one JSON document for programs, tables and bars for people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from rich.console import Console


SHORT_CELL = 26
"""Columns with nothing wider than this are never broken, in characters: times are the widest of them."""
UNBOUNDED = 100_000
"""Characters of a line that is not bounded."""


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    text = msgspec.json.encode(value)
    with suppress(msgspec.DecodeError):  # stored messages may hold halves of surrogate pairs
        text = msgspec.json.format(text, indent=2)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.flush()


def console(*, stderr: bool = False) -> Console:
    """A console that colours for terminals only, and guesses at no markup in texts."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False)


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()) -> None:
    """A table on standard output; the columns in `numbers` are set to the right.

    Titles, and columns of short cells such as figures and times, are never broken: where the terminal is too
    narrow for them, the table is wider than it. A pipe has all the width that the table takes.
    """
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.measure import Measurement
    from rich.table import Table

    cells = [list(row) for row in rows]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for position, title in enumerate(titles):
        side: Literal["right", "left"] = "right" if position in numbers else "left"
        widest = max([cell_len(title), *(cell_len(row[position]) for row in cells)])
        # The first column names what the others are about: it is what people copy.
        whole = position == 0 or widest <= SHORT_CELL
        table.add_column(
            title,
            justify=side,
            overflow="fold",
            no_wrap=whole,
            min_width=widest if whole else max(cell_len(title), SHORT_CELL),
        )
    for row in cells:
        table.add_row(*row)
    out = console()
    least, most = Measurement.get(out, out.options.update(max_width=UNBOUNDED), table)
    out.width = max(out.width, least) if out.is_terminal else max(out.width, most)
    out.print(table)


def shown_tokens(tokens: float) -> str:
    """A short form, such as `950` or `12.3k`."""
    return f"{tokens:.0f}" if tokens < 1000 else f"{tokens / 1000:.1f}k"


def shown_bytes(size: float) -> str:
    """A short form, such as `950 B` or `12.3 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


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


@contextmanager
def counted_progress(what: str, total: int) -> Generator[Callable[[], None]]:
    """A bar on standard error, where that is a terminal; what is yielded moves it by one of `total`."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
