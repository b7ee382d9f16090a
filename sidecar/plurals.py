"""Counts with their nouns: `1 session`, `2 sessions`."""

from __future__ import annotations


def counted(count: int, one: str, many: str | None = None) -> str:
    """The count and its noun; `many` is the plural if it is irregular."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
