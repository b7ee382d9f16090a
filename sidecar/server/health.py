"""Keeps an engine from outside away from a session in which it fails again and again."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import NamedTuple

from msgspec import Struct

FAILURES_IN_A_ROW = 5
FIRST_PAUSE_S = 30.0
LONGEST_PAUSE_S = 600.0
KEPT_SESSIONS = 4096
"""Sessions with failures that are remembered."""


class InQuarantine(Exception):
    """Raised when an engine is not to be asked for a while."""


class Quarantine(NamedTuple):
    """A session from which the engine is kept away."""

    session_id: str
    failures: int
    seconds_left: float
    last: str
    """What went wrong last."""


class _Failures(Struct):
    count: int = 0
    last: str = ""
    until: float = 0.0
    pause_s: float = FIRST_PAUSE_S
    trying: bool = False


class EngineHealth:
    """Counts failures by session; after `FAILURES_IN_A_ROW` the engine is not asked for a while."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, _Failures] = OrderedDict()
        self.failures = 0
        """Calls that have failed so far."""

    def admit(self, session_id: str) -> None:
        """Let a call begin.

        Raises:
            InQuarantine: the engine is in quarantine for this session; the text tells for how long, and why.
        """
        known = self._sessions.get(session_id)
        if known is None or known.count < FAILURES_IN_A_ROW:
            return
        left = known.until - time.monotonic()
        if left > 0:
            raise InQuarantine(
                f"in quarantine for this session after {known.count} failures, for {left:.0f} s more; "
                f"the last one: {known.last}"
            )
        if known.trying:
            raise InQuarantine(f"in quarantine for this session, being tried again; before: {known.last}")
        known.trying = True

    def failed(self, session_id: str, what: str) -> float:
        """Take in that a call has failed; the seconds for which the engine is not asked now, 0 for none."""
        self.failures += 1
        known = self._sessions.setdefault(session_id, _Failures())
        self._sessions.move_to_end(session_id)
        if len(self._sessions) > KEPT_SESSIONS:
            self._sessions.popitem(last=False)
        known.count += 1
        known.last = what[:300]
        if known.count >= FAILURES_IN_A_ROW:
            if known.trying:
                known.pause_s = min(known.pause_s * 2, LONGEST_PAUSE_S)
            known.until = time.monotonic() + known.pause_s
        known.trying = False
        return known.pause_s if known.count >= FAILURES_IN_A_ROW else 0.0

    def went_well(self, session_id: str) -> bool:
        """Take in that a call has come to its end; true where that ends a quarantine."""
        known = self._sessions.pop(session_id, None) if self._sessions else None
        return known is not None and known.count >= FAILURES_IN_A_ROW

    def quarantined(self) -> list[Quarantine]:
        """The sessions from which the engine is kept away now."""
        now = time.monotonic()
        return [
            Quarantine(session_id, known.count, known.until - now, known.last)
            for session_id, known in self._sessions.items()
            if known.count >= FAILURES_IN_A_ROW and known.until > now
        ]
