"""Groups messages: calls with their results, units that are sent or left out as a whole, turns."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import NamedTuple

from sidecar.messages.contract import Reading
from sidecar.messages.text import same_id


class CallPlace(NamedTuple):
    """Location of a call: indices of the message and of the call within it."""

    message: int
    number: int


class Pairing(NamedTuple):
    """Which call each result answers, and which calls are unanswered."""

    answers: dict[int, list[CallPlace | None]]
    """For each message with results, the call of each result; `None` for a result without a call."""
    unanswered: dict[int, list[int]]
    """For each message with unanswered calls, the numbers of those calls."""


def pair(readings: Sequence[Reading], without: Collection[int] = ()) -> Pairing:
    """Pair every result with the nearest preceding open call that has its id.

    Ids are compared by letters and digits; of several open calls, one with the identical id takes precedence.
    Messages whose index is in `without` are ignored.
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


def superseded(readings: Sequence[Reading], without: Collection[int] = ()) -> set[int]:
    """Indices of result messages that a later message repeats and extends, since a host merged them into it.

    Every result in the later message must have a call.
    """
    called: set[str] = set()
    answered: dict[str, int] = {}
    found: set[int] = set()
    for index, reading in enumerate(readings):
        if index in without:
            continue
        for call in reading.calls:
            called.add(same_id(call.id))
            answered.pop(same_id(call.id), None)
        ids = {same_id(result.call_id) for result in reading.results}
        if not ids <= called:
            continue
        for earlier in {answered[call_id] for call_id in ids if call_id in answered}:
            before = readings[earlier]
            if before.role == "tool" and ids > {same_id(result.call_id) for result in before.results}:
                found.add(earlier)
        answered |= dict.fromkeys(ids, index)
    return found


def _take(readings: Sequence[Reading], waiting: dict[str, list[CallPlace]], call_id: str) -> CallPlace | None:
    places = waiting.get(same_id(call_id))
    if not places:
        return None
    for position in range(len(places) - 1, -1, -1):
        place = places[position]
        if readings[place.message].calls[place.number].id == call_id:
            return places.pop(position)
    return places.pop()


class Unit(NamedTuple):
    """One message, or a call with its results and its reasoning."""

    indices: tuple[int, ...]
    """Indices of the unit's messages, ascending; messages of other units may be in between."""
    complete: bool
    """True if every call has its result and every result its call."""
    open: bool
    """True if calls await results and the unit is last: the turn is still in progress."""


def units(readings: Sequence[Reading]) -> list[Unit]:
    """The units of a list, ordered by their first message; every message is in exactly one."""
    pairing = pair(readings, superseded(readings))
    roots = _joined_reasoning(readings)
    broken: set[int] = set()
    for index, places in pairing.answers.items():
        for place in places:
            if place is None:
                broken.add(index)
            else:
                _join(roots, index, place.message)
    members: dict[int, list[int]] = {}
    for index in range(len(readings)):
        members.setdefault(_root(roots, index), []).append(index)
    waiting = pairing.unanswered.keys()
    found: list[Unit] = []
    for indices in members.values():
        waits = any(index in waiting for index in indices)
        complete = not waits and not any(index in broken for index in indices)
        at_end = indices[-1] - indices[0] + 1 == len(indices) and indices[-1] == len(readings) - 1
        found.append(Unit(tuple(indices), complete, waits and at_end))
    return found


def _joined_reasoning(readings: Sequence[Reading]) -> list[int]:
    """A root for each message; separate reasoning shares one with the assistant messages after it."""
    roots = list(range(len(readings)))
    start = -1
    for index, reading in enumerate(readings):
        if reading.role != "assistant":
            start = -1
        elif only_reasons(reading):
            start = start if start >= 0 and only_reasons(readings[index - 1]) else index
            roots[index] = start
        elif start >= 0:
            roots[index] = start
    return roots


def only_reasons(reading: Reading) -> bool:
    """Whether a message consists only of reasoning."""
    return reading.carries_reasoning and not (reading.calls or reading.media or reading.text.strip())


def _root(roots: list[int], index: int) -> int:
    while roots[index] != index:
        roots[index] = roots[roots[index]]
        index = roots[index]
    return index


def _join(roots: list[int], one: int, other: int) -> None:
    a, b = _root(roots, one), _root(roots, other)
    roots[max(a, b)] = min(a, b)


def turn_numbers(
    readings: Sequence[Reading], heartbeats: Container[int] = (), *, after: int = 0
) -> list[int]:
    """The turn of each message, from 1.

    `heartbeats` has the indices of heartbeat messages; `after` is the newest turn of the preceding messages,
    0 if there are none.
    """
    numbers: list[int] = []
    turn = after
    for index, reading in enumerate(readings):
        if reading.opens_turn and index not in heartbeats:
            turn += 1
        numbers.append(max(turn, 1))
    return numbers


def turn_id(number: int) -> str:
    """The name of a turn, such as `t7`."""
    return f"t{number}"


def turn_starts(numbers: Sequence[int]) -> list[int]:
    """The index of the first message of every turn, ascending."""
    return [index for index, number in enumerate(numbers) if index == 0 or numbers[index - 1] != number]
