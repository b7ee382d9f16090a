"""Counts tokens once where the same text is counted again soon."""

from __future__ import annotations

from functools import lru_cache

from sidecar.tokens.contract import TokenCounter

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
