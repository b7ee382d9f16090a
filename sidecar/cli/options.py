"""Options that every command which speaks with a sidecar has."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import NamedTuple, TypeVar

import click
from msgspec import Struct

from sidecar.messages.contract import Usage

R = TypeVar("R")


class InOrder(click.Group):
    """A group whose help lists the commands in the order in which they are written."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names."""
        del ctx
        return list(self.commands)


class Common(NamedTuple):
    """The options that are the same everywhere."""

    config: Path | None
    """Configuration file; `None` for the usual place."""
    state_dir: Path | None
    """State directory; `None` for the configured one."""
    json: bool
    """Write one JSON document for programs, instead of tables for people."""


def common_options(command: Callable[..., R]) -> Callable[..., R]:
    """Gives a command `--config`, `--state-dir` and `--json`, as its first argument."""

    @click.option(
        "--config",
        "config_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Configuration file (default: config.toml in the user's configuration folder).",
    )
    @click.option(
        "--state-dir",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Directory of the store (default: as configured).",
    )
    @click.option("--json", "as_json", is_flag=True, help="Write one JSON document.")
    @wraps(command)
    def with_common(config_file: Path | None, state_dir: Path | None, as_json: bool, **rest: object) -> R:
        return command(Common(config_file, state_dir, as_json), **rest)

    return with_common


def namespace_option(command: Callable[..., R]) -> Callable[..., R]:
    """Gives a command `--namespace`."""
    return click.option(
        "--namespace",
        default="default",
        show_default=True,
        metavar="NAME",
        help="Namespace of the host whose sessions are meant.",
    )(command)


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


class Prices(Struct, rename="camel", kw_only=True, frozen=True):
    """What a million tokens cost, in dollars."""

    new: float
    """Tokens of a prompt that the cache did not serve; with a provider that charges for it, written to it."""
    cached: float
    """Tokens that are read from the cache."""
    plain: float
    """Tokens of a prompt that are neither read from the cache nor written to it."""
    output: float
    """Tokens of an answer."""

    def of(self, sent: int, cached: int) -> float:
        """The price of a prompt of so many tokens, of which so many are cached."""
        return ((sent - cached) * self.new + cached * self.cached) / 1_000_000

    def reported(self, usage: Usage) -> float:
        """The price of a call of the model, by what its provider reported."""
        plain = usage.input_tokens - usage.read_tokens - usage.written_tokens
        prompt = plain * self.plain + usage.read_tokens * self.cached + usage.written_tokens * self.new
        return (prompt + usage.output_tokens * self.output) / 1_000_000


def price_option(command: Callable[..., R]) -> Callable[..., R]:
    """Gives a command `--prices`."""
    return click.option(
        "--prices",
        callback=_prices,
        metavar="NEW,CACHED[,PLAIN,OUTPUT]",
        default="3.75,0.30,3,15",
        show_default=True,
        help="Dollars for a million tokens: new in a prompt (where a provider charges for writing to its "
        "cache, that price), read from the cache; in what a provider reported also plain prompt tokens "
        "(default: as new ones) and output (default: 0).",
    )(command)


def prices_of(texts: Sequence[str]) -> Prices:
    """Prices of new and cached tokens, and of plain ones and output where these are named.

    Raises:
        ValueError: there are other than two or four, or one is no price.
    """
    prices = [float(text) for text in texts]
    if len(prices) not in (2, 4) or not all(0 <= price < math.inf for price in prices):
        raise ValueError
    new, cached, plain, output = prices if len(prices) == 4 else (*prices, prices[0], 0.0)
    return Prices(new=new, cached=cached, plain=plain, output=output)


def _prices(context: click.Context, parameter: click.Parameter, value: str) -> Prices:
    try:
        return prices_of(value.split(","))
    except ValueError:
        message = f"{value!r} is not two or four prices; write something like 3.75,0.30"
        raise click.BadParameter(message, context, parameter) from None
