"""Limits calls to a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic

Clock = Callable[[], float]
"""Monotonic time in seconds."""


class SpendGuard:
    """Allows a limited number of calls within any window of time."""

    def __init__(self, most_calls: int = 24, window_seconds: float = 600, clock: Clock = monotonic) -> None:
        self._most_calls = most_calls
        self._window_seconds = window_seconds
        self._clock = clock
        self._calls: deque[float] = deque()

    def take(self) -> bool:
        """Spend one call. Returns false if the window's limit is reached."""
        now = self._clock()
        while self._calls and now - self._calls[0] >= self._window_seconds:
            self._calls.popleft()
        if len(self._calls) >= self._most_calls:
            return False
        self._calls.append(now)
        return True


class CircuitBreaker:
    """Stops calls for a while after several consecutive failures, then allows one as a trial."""

    def __init__(self, most_failures: int = 3, open_seconds: float = 300, clock: Clock = monotonic) -> None:
        self._most_failures = most_failures
        self._open_seconds = open_seconds
        self._clock = clock
        self._failures = 0
        self._opened_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are stopped, apart from trials, because too many failed in a row."""
        return self._failures >= self._most_failures

    @property
    def is_waiting(self) -> bool:
        """Whether a call now would be stopped."""
        return self.is_open and self._clock() - self._opened_at < self._open_seconds

    def allows(self) -> bool:
        """Whether to attempt a call; while the breaker is open, true once every `open_seconds`."""
        if not self.is_open:
            return True
        now = self._clock()
        if now - self._opened_at < self._open_seconds:
            return False
        self._opened_at = now
        return True

    def succeeded(self) -> None:
        """Record a useful result, which closes the breaker."""
        self._failures = 0

    def failed(self) -> None:
        """Record a failed or useless call."""
        self._failures += 1
        if self.is_open:
            self._opened_at = self._clock()
