"""The activity log as it stands in an answer: one message of lines, and the model's short reply to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sidecar.engine.calls import Made
from sidecar.engines.terse.scribe import LogLine
from sidecar.engines.terse.teaching import ACKNOWLEDGEMENT

HEADER = "[Context -- Activity Log]"
FRAME_TOKENS = 90
"""At most what header, acknowledgement, and the marks that tell both from the host's messages, take."""


class ActivityLog(NamedTuple):
    """The lines that are shown, and the last position that they stand for."""

    lines: Sequence[LogLine]
    upto: int

    @property
    def tokens(self) -> int:
        """At most what the log and the reply take, before calibration; 0 without lines."""
        return FRAME_TOKENS + sum(line.tokens for line in self.lines) if self.lines else 0

    def newest(self, tokens: int) -> ActivityLog:
        """The log without as many of its oldest lines as it takes to have at most `tokens` tokens."""
        left = tokens - FRAME_TOKENS
        begin = len(self.lines)
        while begin and self.lines[begin - 1].tokens <= left:
            begin -= 1
            left -= self.lines[begin].tokens
        return ActivityLog(self.lines[begin:], self.upto)

    @property
    def floor(self) -> int:
        """The position of the first message that the log speaks of; behind `upto` where it has no line."""
        stored = (line.position for line in self.lines if line.position)
        return next(stored, self.upto + 1)

    def messages(self) -> list[Made]:
        """The log and the reply; nothing without lines."""
        if not self.lines:
            return []
        stamp = self.lines[-1].timestamp_ms
        since = self.lines[0].since
        log = Made(
            role="user",
            kind="activityLog",
            ref="log",
            text="\n".join((HEADER, *(line.text for line in self.lines))),
            timestamp_ms=stamp,
            covers=(since, self.upto) if since else None,
        )
        reply = Made(
            role="assistant", kind="activityLog", ref="ack", text=ACKNOWLEDGEMENT, timestamp_ms=stamp
        )
        return [log, reply]
