"""Groups messages that must be sent, or left out, together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sidecar.messages.contract import Reading
from sidecar.messages.pairing import pair


class Unit(NamedTuple):
    """One message, or a call with its results and the reasoning that belongs to it."""

    indices: tuple[int, ...]
    """The messages of the unit, ascending; another unit's may stand between them."""
    complete: bool
    """True where every call has its result and every result its call."""
    open: bool
    """True where calls wait for results and nothing comes after the unit: the model is at work."""


def units(readings: Sequence[Reading]) -> list[Unit]:
    """The units of a list of messages, ordered by their first message; every message is in one."""
    pairing = pair(readings)
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
    """A root for each message; reasoning on its own shares one with the model's messages behind it."""
    roots = list(range(len(readings)))
    start = -1
    for index, reading in enumerate(readings):
        if reading.role != "assistant":
            start = -1
        elif _only_reasons(reading):
            start = start if start >= 0 and _only_reasons(readings[index - 1]) else index
            roots[index] = start
        elif start >= 0:
            roots[index] = start
    return roots


def _only_reasons(reading: Reading) -> bool:
    return reading.carries_reasoning and not (reading.calls or reading.media or reading.text.strip())


def _root(roots: list[int], index: int) -> int:
    while roots[index] != index:
        roots[index] = roots[roots[index]]
        index = roots[index]
    return index


def _join(roots: list[int], one: int, other: int) -> None:
    a, b = _root(roots, one), _root(roots, other)
    roots[max(a, b)] = min(a, b)
