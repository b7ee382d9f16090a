"""Statistics of engine calls: how many, how many failed, how long they took."""

from __future__ import annotations

import logging
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING

from msgspec import Struct, field

from sidecar.server.failures import EngineFailed
from sidecar.server.log import about

if TYPE_CHECKING:
    from sidecar.server.background.telemetry import Telemetry
    from sidecar.server.engines.instance import EngineInstance


REMEMBERED = 512
"""Newest durations of a method, from which percentiles are taken."""

_log = logging.getLogger(__name__)


class EngineWatch:
    """What is known of the calls of all engines of one sidecar."""

    def __init__(self) -> None:
        self.figures = Figures()
        self.telemetry: Telemetry | None = None

    def ended(
        self,
        instance: EngineInstance,
        method: str,
        session_id: str,
        began: float,
        error: BaseException | None,
    ) -> None:
        """Take in the end of a call that began at `began`, by `time.perf_counter`."""
        took = perf_counter() - began
        self.figures.of(method).took(took, failed=error is not None)
        if self.telemetry is not None:
            self.telemetry.engine_called(instance.id, method, session_id, took, error is not None)
        if isinstance(error, EngineFailed):
            _tell(instance, method, session_id, took, error)


def _tell(instance: EngineInstance, method: str, session_id: str, took: float, error: EngineFailed) -> None:
    cause = error.__cause__ if error.unforeseen else None
    _log.log(
        logging.INFO if error.quarantined else logging.ERROR if cause else logging.WARNING,
        "%s",
        error.message,
        exc_info=cause,
        extra=about(
            event="engineFailed",
            engine=instance.id,
            method=method,
            sessionId=session_id or None,
            ms=round(took * 1000, 1),
            code=error.code,
        ),
    )


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
