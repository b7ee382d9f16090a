"""Writes the notes in front of the window: what is to hold, and the values that were worked with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sidecar.engine.entry import Entry
from sidecar.messages.text import plain_text
from sidecar.recall.instructions import Instruction
from sidecar.recall.recollection import day
from sidecar.recall.working_set import WorkingSet

INSTRUCTIONS = "[Asked for by the user earlier; heed unless taken back since]"
VALUES = "[Values used earlier, by tool]"
INSTRUCTIONS_SHARE = 0.5
"""Share of the notes that instructions take at most where there are values too."""


def write_notes(
    standing: Sequence[Instruction],
    values: WorkingSet,
    window: Sequence[Entry],
    room: int,
    alone: int,
    count: Callable[[str], int],
    asked: Sequence[str] = (),
) -> str:
    """The notes in at most `room` tokens; empty where there is nothing to note.

    Instructions take half of it at most; where there are no values, `alone` tokens if that is more.
    `values` are those of what stands in front of the window; `asked` are the terms of the prompt.
    """
    visible = "\n".join(plain_text(entry.reading) for entry in window)
    listed = values.lines(room, count, visible, asked)
    half = int(room * INSTRUCTIONS_SHARE)
    rules = _instructions(standing, half if listed else max(half, min(room, alone)), count, visible)
    spent = sum(count(line) + 1 for line in rules)
    if listed:
        listed = values.lines(room - spent - count(VALUES) - 1, count, visible, asked)
    parts = ["\n".join((VALUES, *listed))] if listed else []
    return "\n".join((*rules, *parts))


def _instructions(
    standing: Sequence[Instruction], room: int, count: Callable[[str], int], visible: str
) -> list[str]:
    left = room - count(INSTRUCTIONS) - 1
    kept: list[tuple[int, str]] = []
    for each in standing:
        if each.text in visible:
            continue
        remark = each.remark
        line = f"({remark.turn_id}, {day(remark.timestamp_ms)}) {each.text}"
        cost = count(line) + 1
        if cost <= left:
            kept.append((-remark.position, line))
            left -= cost
    return [INSTRUCTIONS, *(line for _, line in sorted(kept))] if kept else []
