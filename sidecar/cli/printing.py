"""Writes results: one JSON document for programs, tables for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from rich.console import Console


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
    """A table on standard output; the columns in `numbers` are set to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for position, title in enumerate(titles):
        side: Literal["right", "left"] = "right" if position in numbers else "left"
        # The first column names what the others are about: it is what people copy.
        table.add_column(title, justify=side, overflow="fold", no_wrap=position == 0)
    for row in rows:
        table.add_row(*row)
    console().print(table)


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
