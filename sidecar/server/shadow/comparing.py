"""Compares two engines' answers to the same requests: size, prefix kept, coverage, validity, time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct, field

from sidecar.messages.contract import Dialect, MessageError
from sidecar.protocol.engine import ShadowSide
from sidecar.server.figures import MethodFigures

REMEMBERED_SESSIONS = 256
"""Sessions whose newest answers are known, so that the next one's prefix can be measured."""

Print = tuple[int, int]
"""Stands for one message: its hash, its bytes."""


class Answer(NamedTuple):
    """One engine's answer to a request."""

    messages: Sequence[bytes]
    tokens: int
    seconds: float


class Side(Struct):
    """What is known of the answers of one of the two."""

    calls: MethodFigures = field(default_factory=MethodFigures)
    before_bytes: int = 0
    kept_bytes: int = 0
    invalid: int = 0

    def take(self, answer: Answer, prints: Sequence[Print], before: Sequence[Print], *, valid: bool) -> None:
        """Take in an answer, and what of the one before it its beginning still is."""
        self.calls.took(answer.seconds, failed=False)
        self.calls.tokens += answer.tokens
        self.invalid += not valid
        for old, new in zip(before, prints, strict=False):
            if old != new:
                break
            self.kept_bytes += old[1]
        self.before_bytes += sum(size for _, size in before)

    def failed(self, seconds: float) -> None:
        """Take in that there was no answer."""
        self.calls.took(seconds, failed=True)

    def described(self, engine_id: str) -> ShadowSide:
        """All of it as it is told."""
        calls = self.calls
        answers = calls.count - calls.errors
        return ShadowSide(
            engine=engine_id,
            answers=answers,
            failures=calls.errors,
            invalid=self.invalid,
            mean_tokens=calls.tokens // answers if answers else 0,
            prefix_kept=round(self.kept_bytes / self.before_bytes, 4) if self.before_bytes else None,
            p50_ms=round(calls.percentile(0.5), 1),
            p95_ms=round(calls.percentile(0.95), 1),
        )


class Comparison:
    """The figures of both, over all sessions."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.primary = Side()
        self.shadow = Side()
        self.compared = 0
        self._sent_bytes = 0
        self._covered_bytes = 0
        self._before: OrderedDict[str, tuple[list[Print], list[Print]]] = OrderedDict()

    @property
    def coverage(self) -> float | None:
        """The share of what the primary sends that the shadow sends too, word for word, by bytes."""
        return round(self._covered_bytes / self._sent_bytes, 4) if self._sent_bytes else None

    def take(self, session_id: str, primary: Answer, shadow: Answer) -> None:
        """Take in two answers to one request."""
        ours, theirs = _prints(primary.messages), _prints(shadow.messages)
        before = self._before.get(session_id, ([], []))
        self.primary.take(primary, ours, before[0], valid=self._valid(primary.messages))
        self.shadow.take(shadow, theirs, before[1], valid=self._valid(shadow.messages))
        also = set(theirs)
        self._sent_bytes += sum(size for _, size in ours)
        self._covered_bytes += sum(each[1] for each in ours if each in also)
        self.compared += 1
        self._before[session_id] = ours, theirs
        self._before.move_to_end(session_id)
        if len(self._before) > REMEMBERED_SESSIONS:
            self._before.popitem(last=False)

    def _valid(self, messages: Sequence[bytes]) -> bool:
        """Whether a provider would take the list."""
        try:
            return not self._dialect.check([self._dialect.read(message) for message in messages])
        except MessageError:
            return False


def _prints(messages: Sequence[bytes]) -> list[Print]:
    return [(hash(message), len(message)) for message in messages]
