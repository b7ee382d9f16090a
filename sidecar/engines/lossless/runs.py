"""Finds the messages that the next summary stands for: a run of whole units."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.engine.entry import Entry
from sidecar.engine.session import Session
from sidecar.messages.units import units

SLICE = 48
"""Messages that are read at a time."""
LONGEST = 2000
"""Messages after which a run ends even inside a unit, so that a broken history is summarised too."""
TURN_WITHIN = 8
"""Messages within which the end of a run is moved on to the end of its turn."""


async def next_run(
    session: Session, first: int, last: int, tokens: int, *, rest: bool = False
) -> list[Entry]:
    """The messages from position `first` on that hold about `tokens` tokens, ending with a whole unit.

    Nothing behind `last` is taken. Empty where there are fewer tokens, unless the `rest` is wanted too.
    """
    entries: list[Entry] = []
    total, reach = 0, 0
    while True:
        start = first + len(entries)
        more = await session.history.read(start, min(start + SLICE - 1, last)) if start <= last else []
        entries += more
        ended = not more or entries[-1].position == last
        while reach < len(entries) and total < tokens:
            total += entries[reach].tokens
            reach += 1
        if total >= tokens or (rest and ended):
            end = _end(entries, reach, ended=ended)
            if end or ended or len(entries) >= LONGEST:
                return entries[: end or (len(entries) if rest or len(entries) >= LONGEST else 0)]
        elif ended:
            return []


def _end(entries: Sequence[Entry], least: int, *, ended: bool) -> int:
    """Where the run ends at the earliest: behind a whole unit, best behind a turn; 0 where none is seen."""
    inside: set[int] = set()
    for unit in units([entry.reading for entry in entries]):
        inside.update(range(unit.indices[0] + 1, unit.indices[-1] + 1))
    known = len(entries) if ended else len(entries) - TURN_WITHIN
    ends = [end for end in range(least, len(entries) + 1) if end not in inside]
    ends = [end for end in ends if end < known or (ended and end == len(entries))]
    if not ends:
        return 0
    for end in ends:
        if end - ends[0] <= TURN_WITHIN and end < len(entries) and entries[end].opens_turn:
            return end
    return ends[0]
