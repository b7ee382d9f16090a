"""One stored message as recall reads it, with where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sidecar.store.search import SearchQuery, SearchResult


class Remark(NamedTuple):
    """What a stored message says."""

    position: int
    turn_id: str
    role: str
    timestamp_ms: int
    text: str
    """Visible text, calls and results; text of our own left out."""
    is_result: bool = False
    """Whether it carries results of tools."""
    calls: bool = False
    """Whether it calls tools."""


class RemarkSource(Protocol):
    """The history that is searched."""

    async def search(self, query: SearchQuery) -> SearchResult:
        """The messages that match, best first."""
        ...

    async def remarks(self, positions: Sequence[int]) -> dict[int, Remark]:
        """The messages at these positions; what is not there, or says nothing, is left out."""
        ...
