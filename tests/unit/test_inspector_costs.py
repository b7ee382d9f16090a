"""The cost of a conversation, compared with sums calculated by hand."""

from __future__ import annotations

from typing import cast

import pytest

from sidecar.cli.inspector.history import History, Turn
from sidecar.cli.options import Prices, prices_of
from sidecar.messages.contract import Usage

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
            prices_of(["3.75", "0.30"]),
            150 * 3.75 + 240 * 3.75 + 60 * 0.30,
            400 * 3.75 + 150 * 0.30,
            400 * 3.75,
        ),
        # A provider that caches by itself: a write costs what an uncached token does, a read half.
        (prices_of(["2.50", "1.25"]), 390 * 2.50 + 60 * 1.25, 400 * 2.50 + 150 * 1.25, 400 * 2.50),
    ],
)
def test_costs_are_those_of_new_and_cached_tokens(
    prices: Prices, engine: float, everything: float, window: float
) -> None:
    last = played(budget=250).costs(prices)[-1]
    assert [cost * 1_000_000 for cost in last] == pytest.approx([engine, everything, window])


def test_a_window_that_need_not_move_is_cached() -> None:
    last = played(budget=1000).costs(prices_of(["10", "1"]))[-1]
    assert last.window == last.everything


def test_a_call_costs_what_its_provider_reported_with_cache_reads_and_writes() -> None:
    # Anthropic: 1,000 plain at 3, 4,000 written for five minutes at 3.75, 20,000 read at 0.30, 500 out at 15.
    anthropic = prices_of(["3.75", "0.30", "3", "15"])
    assert anthropic.reported(Usage(25_000, 500, 20_000, 4_000)) == pytest.approx(
        0.003 + 0.015 + 0.006 + 0.0075
    )
    # OpenAI charges nothing for writing: 1,000 plain at 1.25, 9,000 read at 0.125, 800 out at 10.
    openai = prices_of(["1.25", "0.125", "1.25", "10"])
    assert openai.reported(Usage(10_000, 800, 9_000)) == pytest.approx(0.00125 + 0.001125 + 0.008)


@pytest.mark.parametrize(
    "texts", [["1"], ["1", "2", "3"], ["1", "-2"], ["1", "x"], ["nan", "1"], ["1", "inf"]]
)
def test_a_value_that_is_not_a_price_is_refused(texts: list[str]) -> None:
    with pytest.raises(ValueError):
        prices_of(texts)
