"""Numbers the turns of a conversation.

A turn opens at a user message that carries no tool result and is neither synthetic nor a heartbeat. What
comes before the first one belongs to the first turn too, so that a system prompt is part of `t1`.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from sidecar.messages.contract import Reading


def turn_numbers(
    readings: Sequence[Reading], heartbeats: Container[int] = (), *, after: int = 0
) -> list[int]:
    """The turn of each message, from 1.

    `heartbeats` holds the indices of heartbeat messages; `after` is the newest turn of the messages in front
    of these, 0 where there are none.
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
