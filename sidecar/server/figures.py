"""Counts the calls of engines by method: how many, how many failed, how long they took."""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

REMEMBERED = 512
"""Newest durations of a method, from which percentiles are taken."""


class MethodFigures(Struct):
    """What is known of one method."""

    count: int = 0
    errors: int = 0
    tokens: int = 0
    """Tokens of all answers, where the method gives any."""
    _seconds: deque[float] = field(default_factory=lambda: deque[float](maxlen=REMEMBERED))

    def took(self, seconds: float, *, failed: bool) -> None:
        """Take in that a call has come to its end."""
        self.count += 1
        self.errors += failed
        self._seconds.append(seconds)

    def percentile(self, share: float) -> float:
        """Milliseconds within which that share of the newest calls was done."""
        ordered = sorted(self._seconds)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000 if ordered else 0.0

    def described(self) -> str:
        """All of it in a few words."""
        failed = f", {self.errors} failed" if self.errors else ""
        tokens = f", {self.tokens // max(self.count, 1)} tokens each" if self.tokens else ""
        return (
            f"{self.count} calls{failed}, p50 {self.percentile(0.5):.1f} ms, "
            f"p95 {self.percentile(0.95):.1f} ms{tokens}"
        )


class Figures:
    """The figures of one sidecar, by method."""

    def __init__(self) -> None:
        self._methods: dict[str, MethodFigures] = {}

    def of(self, method: str) -> MethodFigures:
        """The figures of a method."""
        known = self._methods.get(method)
        if known is None:
            known = self._methods[method] = MethodFigures()
        return known

    def all(self) -> dict[str, MethodFigures]:
        """The figures of every method that was called, by name."""
        return dict(sorted(self._methods.items()))
