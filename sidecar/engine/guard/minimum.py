"""What every answer must hold: system messages, the newest user message, the last tool group after it.

Rule: protocol.md, "The answer fits".
"""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.engine.entry import Entry
from sidecar.engine.session import Timeline
from sidecar.messages.pairing import units

REACH = 4096
"""Tokens back from the end within which the last group is looked for first."""


async def minimum(timeline: Timeline, *, prompted: bool = False) -> list[Entry]:
    """The entries that must not be left out, in order.

    `prompted` says that the host adds the newest user message itself, behind the answer.
    """
    needed = {entry.place: entry for entry in await timeline.system()}
    if prompted:
        return [needed[place] for place in sorted(needed)]
    reach = REACH
    while True:
        newest, whole = await timeline.tail(reach)
        asked = _newest_user(newest)
        if asked is None and newest and not whole:
            asked = await timeline.opener(newest[-1].turn)
        group = _last_group(newest, asked, whole)
        if group is not None:
            break
        reach *= 8
    for entry in [*([asked] if asked else []), *group]:
        needed[entry.place] = entry
    return [needed[place] for place in sorted(needed)]


def last_group(entries: Sequence[Entry]) -> list[int]:
    """The indices of the last call with its results, empty where nothing was called."""
    for unit in reversed(units([entry.reading for entry in entries])):
        if any(entries[i].reading.calls for i in unit.indices):
            return list(unit.indices)
    return []


def _newest_user(newest: Sequence[Entry]) -> Entry | None:
    """The newest message of the user, a heartbeat's included: it is what the model is to answer."""
    return next((entry for entry in reversed(newest) if entry.reading.opens_turn), None)


def _last_group(newest: Sequence[Entry], asked: Entry | None, whole: bool) -> list[Entry] | None:
    """The last group behind `asked`, empty where there is none, `None` where `newest` is too short."""
    floor = asked.place if asked else -1
    after = [entry for entry in newest if entry.place > floor]
    reaches_back = whole or len(after) < len(newest)
    group = last_group(after)
    if reaches_back or (group and group[0] > 0):
        return [after[i] for i in group]
    return None
