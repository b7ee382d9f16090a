"""Writes results and progress: one JSON document for programs, tables and bars for people."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from rich.console import Console


SHORT_CELL = 26
"""Columns up to this width are never wrapped, in characters; it fits a timestamp."""
_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
UNBOUNDED = 100_000
"""Line width that counts as unlimited, in characters."""


def print_json(value: object) -> None:
    """Print one JSON document to standard output."""
    text = msgspec.json.encode(value)
    with suppress(msgspec.DecodeError):  # stored messages may hold halves of surrogate pairs
        text = msgspec.json.format(text, indent=2)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.flush()


def console(*, stderr: bool = False) -> Console:
    """A console that uses colour on terminals only and prints text without interpreting markup."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False)


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()) -> None:
    """Print a table to standard output; the columns in `numbers` are right-aligned.

    Titles and columns of short cells, such as figures and times, are never wrapped, even if the table then
    exceeds the terminal. In a pipe nothing is wrapped.
    """
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.measure import Measurement
    from rich.table import Table

    # Ids and names come from elsewhere: a terminal must obey none of what they hold.
    cells = [[_COMMANDS.sub("\N{REPLACEMENT CHARACTER}", cell) for cell in row] for row in rows]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for position, title in enumerate(titles):
        side: Literal["right", "left"] = "right" if position in numbers else "left"
        widest = max([cell_len(title), *(cell_len(row[position]) for row in cells)])
        # The first column identifies the row, and people copy it.
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
    """A progress bar on a terminal; the yielded function takes the step, the amount done and the total."""
    if quiet or not sys.stderr.isatty():
        yield _ignore
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


def _ignore(step: str, done: int, total: int) -> None:
    del step, done, total


@contextmanager
def counted_progress(what: str, total: int) -> Generator[Callable[[], None]]:
    """A progress bar on a terminal; each call of the yielded function advances it by one of `total`."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
