"""Reads token budgets such as `32k` or `128000`."""

from __future__ import annotations

import re

import click

_BUDGET = re.compile(r"(\d+(?:\.\d+)?)([km]?)", re.IGNORECASE | re.ASCII)
_FACTORS = {"": 1, "k": 1000, "m": 1_000_000}


def token_budget(text: str) -> int:
    """A positive number of tokens; `k` stands for a thousand, `m` for a million.

    Raises:
        BadParameter: the text is something else.
    """
    match = _BUDGET.fullmatch(text.strip())
    tokens = int(float(match[1]) * _FACTORS[match[2].lower()]) if match else 0
    if tokens < 1:
        raise click.BadParameter(f"{text!r} is no budget; write something like 32k or 128000")
    return tokens
