"""The error for an answer that cannot be made small enough."""

from __future__ import annotations


class Overflow(Exception):
    """Raised when even the minimum exceeds the budget (error 1002)."""

    def __init__(self, required: int) -> None:
        super().__init__(f"the minimum needs {required} tokens")
        self.required = required
