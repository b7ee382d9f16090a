"""Measures an answer so that a host that counts in another way finds no more in it."""

from __future__ import annotations

from collections.abc import Iterable

from sidecar.engine.entry import Entry
from sidecar.engine.window import tokens_of
from sidecar.recall.passages import rough_tokens
from sidecar.tokens.contract import TokenCounter
from sidecar.tokens.message_cost import MESSAGE_OVERHEAD, readable_text


class Measure:
    """Two counts of the same: by the tokenizer, and by characters; the larger one holds.

    Many runtimes take four characters, or one of Han, for a token: of English prose that is up to a third
    more than a tokenizer finds, of source code it is less.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def counted(self, text: str) -> int:
        """Tokens of a text by the tokenizer, before calibration."""
        return self._counter.count(text)

    def text(self, text: str) -> int:
        """Tokens of a text by the count that finds more, before calibration."""
        return max(self._counter.count(text), rough_tokens(text)) if text else 0

    def excess(self, entries: Iterable[Entry], texts: Iterable[str] = (), counted: int = 0) -> int:
        """By how many tokens a count of characters finds more in messages, and in our own texts.

        `counted` is what the texts take by the tokenizer.
        """
        listed = list(entries)
        rough = sum(rough_tokens(readable_text(entry.reading)) + MESSAGE_OVERHEAD for entry in listed)
        rough += sum(rough_tokens(text) + FENCE for text in texts)
        return max(rough - tokens_of(listed) - counted, 0)


FENCE = 16 + MESSAGE_OVERHEAD
"""Tokens of the marks around a text of our own, by characters."""
