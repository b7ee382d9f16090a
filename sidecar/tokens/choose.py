"""Finds the token counter that a setting names."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Literal

from sidecar.tokens.contract import TokenCounter
from sidecar.tokens.estimate import EstimateCounter
from sidecar.tokens.exact import ExactCounter
from sidecar.tokens.remembering import RememberingCounter

CounterName = Literal["auto", "o200k", "cl100k", "estimate"]


class CounterUnavailable(LookupError):
    """Raised when a setting asks for a vocabulary whose package is not installed."""


def counter(name: CounterName = "auto") -> TokenCounter:
    """The counter of that name; `auto` is o200k where its package is installed, else the estimate.

    Its `name` says which it is. The same name gives the same object, so that a vocabulary is loaded once.

    Raises:
        CounterUnavailable: a vocabulary is asked for by name, and its package is not installed.
    """
    if name == "auto":
        name = "o200k" if vocabularies_installed() else "estimate"
    elif name != "estimate" and not vocabularies_installed():
        raise CounterUnavailable(
            f"The token counter {name!r} needs the package rs-bpe. "
            "Install context-sidecar[tokens], or choose the counter 'auto' or 'estimate'."
        )
    return _counter(name)


def vocabularies_installed() -> bool:
    """True where exact counting is possible; imports nothing."""
    return find_spec("rs_bpe") is not None


@cache
def _counter(name: Literal["o200k", "cl100k", "estimate"]) -> TokenCounter:
    match name:
        case "o200k":
            return RememberingCounter(ExactCounter("o200k_base"))
        case "cl100k":
            return RememberingCounter(ExactCounter("cl100k_base"))
        case "estimate":
            return RememberingCounter(EstimateCounter())
