"""The newest answers of one session, for deltas and explanations."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from os import urandom
from typing import TYPE_CHECKING, NamedTuple

from sidecar.engine.guard.decisions import Record
from sidecar.server.sessions.timeline import SessionTimeline

if TYPE_CHECKING:
    from sidecar.memory.contract import InjectionPoint
    from sidecar.memory.record import Injection

KEPT = 8
"""Answers that a session remembers (spec: at least 2)."""


class Result(NamedTuple):
    """An answer that was given."""

    result_id: str
    messages: Sequence[bytes]
    turn_id: str
    record: Record
    timeline: SessionTimeline
    injections: Sequence[tuple[InjectionPoint, Injection]]
    """Memory that the answer holds, or that goes with it."""


class Results:
    """Remembers the answers of one session for a while."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Result] = OrderedDict()
        self._tag = urandom(4).hex()
        self._made = 0

    def add(
        self,
        messages: Sequence[bytes],
        turn_id: str,
        record: Record,
        timeline: SessionTimeline,
        injections: Sequence[tuple[InjectionPoint, Injection]] = (),
    ) -> str:
        """Remember an answer; returns its new id."""
        self._made += 1
        result_id = f"{self._tag}-{self._made}"
        self._kept[result_id] = Result(result_id, messages, turn_id, record, timeline, injections)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return result_id

    def get(self, result_id: str) -> Result | None:
        """The answer of that id, while it is remembered."""
        return self._kept.get(result_id)

    def newest_of(self, turn_id: str | None) -> Result | None:
        """The newest answer, of that turn where one is named."""
        for result in reversed(self._kept.values()):
            if turn_id is None or result.turn_id == turn_id:
                return result
        return None


class Edit(NamedTuple):
    """One change of a list of messages, in positions of the previous list."""

    start: int
    delete_count: int
    messages: Sequence[bytes]


def edits(previous: Sequence[bytes], current: Sequence[bytes]) -> list[Edit]:
    """How to come from one list to the other: ascending edits, none where they are equal."""
    shorter = min(len(previous), len(current))
    start = 0
    while start < shorter and previous[start] == current[start]:
        start += 1
    end = 0
    while end < shorter - start and previous[-1 - end] == current[-1 - end]:
        end += 1
    removed = len(previous) - start - end
    added = current[start : len(current) - end]
    return [Edit(start, removed, added)] if removed or added else []
