"""The interface of token counters."""

from __future__ import annotations

from typing import Protocol


class TokenCounter(Protocol):
    """Counts the tokens of plain text. Implementations are safe to call from any thread."""

    name: str
    """Identifies the counts, such as `o200k_base` or `estimate-1`; a new name invalidates stored counts."""
    exact: bool
    """False for an estimate."""

    def count(self, text: str) -> int:
        """The number of tokens of `text`; never raises, not even for lone surrogates."""
        ...
