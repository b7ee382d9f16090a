"""Finds the call that each tool result answers."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

from sidecar.messages.contract import Reading
from sidecar.messages.folding import same_id


class CallPlace(NamedTuple):
    """Where a call stands: the message, and which of its calls."""

    message: int
    number: int


class Pairing(NamedTuple):
    """Which call each result answers, and which calls no result answers."""

    answers: dict[int, list[CallPlace | None]]
    """For each message with results, the call of each result; `None` for a result without one."""
    unanswered: dict[int, list[int]]
    """For each message with calls that were not answered, the numbers of those calls."""


def pair(readings: Sequence[Reading], without: Container[int] = ()) -> Pairing:
    """Pairs every result with the nearest call before it that has its id and is still open.

    Ids are compared by letters and digits; of several open calls, one that is spelled alike comes first.
    Messages whose index is in `without` are treated as absent.
    """
    waiting: dict[str, list[CallPlace]] = {}
    answers: dict[int, list[CallPlace | None]] = {}
    for index, reading in enumerate(readings):
        if index in without:
            continue
        for number, call in enumerate(reading.calls):
            waiting.setdefault(same_id(call.id), []).append(CallPlace(index, number))
        if reading.results:
            answers[index] = [_take(readings, waiting, result.call_id) for result in reading.results]
    unanswered: dict[int, list[int]] = {}
    for places in waiting.values():
        for place in places:
            unanswered.setdefault(place.message, []).append(place.number)
    for numbers in unanswered.values():
        numbers.sort()
    return Pairing(answers, unanswered)


def _take(readings: Sequence[Reading], waiting: dict[str, list[CallPlace]], call_id: str) -> CallPlace | None:
    places = waiting.get(same_id(call_id))
    if not places:
        return None
    for position in range(len(places) - 1, -1, -1):
        place = places[position]
        if readings[place.message].calls[place.number].id == call_id:
            return places.pop(position)
    return places.pop()
