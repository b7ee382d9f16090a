"""What a conversation costs, against sums worked out by hand."""

from __future__ import annotations

from typing import cast

import pytest

from sidecar.cli.inspector.history import History, Turn
from sidecar.cli.options import Prices

SIZES = [100, 50, 200, 50]
"""Tokens of the messages: two turns of two."""


def turn(number: int, last: int, history: int, sent: int, cached: int) -> Turn:
    return Turn(number, last - 1, last, history, sent, cached, 1, [], "", [], [], [], None, 0.0)


def played(budget: int) -> History:
    history = cast("History", object.__new__(History))
    history.budget = budget
    history.turns = [turn(1, 1, 150, 150, 0), turn(2, 3, 400, 300, 60)]
    history._sizes = SIZES  # pyright: ignore[reportPrivateUsage]
    return history


@pytest.mark.parametrize(
    ("prices", "engine", "everything", "window"),
    [
        # New tokens are written to the cache at 1.25 of 3 dollars, and read from it at 0.1.
        (
            Prices(new=3.75, cached=0.30),
            150 * 3.75 + 240 * 3.75 + 60 * 0.30,
            400 * 3.75 + 150 * 0.30,
            400 * 3.75,
        ),
        # A provider that caches by itself: a write costs what an uncached token does, a read half.
        (Prices(new=2.50, cached=1.25), 390 * 2.50 + 60 * 1.25, 400 * 2.50 + 150 * 1.25, 400 * 2.50),
    ],
)
def test_costs_are_those_of_new_and_cached_tokens(
    prices: Prices, engine: float, everything: float, window: float
) -> None:
    last = played(budget=250).costs(prices)[-1]
    assert [cost * 1_000_000 for cost in last] == pytest.approx([engine, everything, window])


def test_a_window_that_need_not_move_is_cached() -> None:
    last = played(budget=1000).costs(Prices(new=10, cached=1))[-1]
    assert last.window == last.everything
