"""Longest increasing and longest common subsequences."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

MAX_CELLS = 120_000_000
"""Bound for `common_subsequence`: a bit of memory for each pair of positions, 15 MB."""


def rising(values: Sequence[int]) -> list[int]:
    """The positions of a longest strictly increasing subsequence of `values`."""
    if all(before < after for before, after in pairwise(values)):
        return list(range(len(values)))
    tails: list[int] = []
    tail_positions: list[int] = []
    previous: list[int] = []
    for position, value in enumerate(values):
        length = bisect_left(tails, value)
        previous.append(tail_positions[length - 1] if length else -1)
        if length == len(tails):
            tails.append(value)
            tail_positions.append(position)
        else:
            tails[length] = value
            tail_positions[length] = position
    chosen: list[int] = []
    position = tail_positions[-1]
    while position >= 0:
        chosen.append(position)
        position = previous[position]
    chosen.reverse()
    return chosen


def common_subsequence(columns: int, matches: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs `(row, column)` of a longest common subsequence, the lowest columns first of all.

    `matches` has for each row the set of columns it equals, as bits. Each row of the usual table is one
    integer, whose zero bits are the columns in which the length rises.
    """
    everything = (1 << columns) - 1
    vector = everything
    table: list[int] = []
    for row in matches:
        hits = vector & row
        vector = ((vector + hits) | (vector - hits)) & everything
        table.append(vector)
    pairs: list[tuple[int, int]] = []
    row, column = len(table), columns
    while row and column:
        bit = 1 << (column - 1)
        if table[row - 1] & bit:
            column -= 1
            continue
        row -= 1
        if row and not table[row - 1] & bit:
            continue
        column -= 1
        pairs.append((row, column))
    pairs.reverse()
    return pairs
