"""What counts tokens, and what a count means."""

from __future__ import annotations

from typing import Protocol


class TokenCounter(Protocol):
    """Counts the tokens of plain text. Implementations are safe to call from any thread."""

    name: str
    """Identifies the counts, for example `o200k_base` or `estimate-1`; a new name outdates stored counts."""
    exact: bool
    """False for an estimate."""

    def count(self, text: str) -> int:
        """The number of tokens of `text`; never raises, lone surrogates included."""
        ...
