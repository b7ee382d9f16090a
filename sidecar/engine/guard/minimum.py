"""The minimum of every answer: system messages, the newest user message, the last tool group after it.

Rule: protocol.md, "The answer fits".
"""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.engine.entry import Entry
from sidecar.engine.session import Timeline
from sidecar.messages.pairing import units

REACH = 4096
"""Tokens from the end searched first for the last group."""


async def minimum(timeline: Timeline, *, prompted: bool = False) -> list[Entry]:
    """The entries that no answer may leave out, in order.

    `prompted` means that the host itself adds the newest user message after the answer.
    """
    needed = {entry.place: entry for entry in await timeline.system()}
    if prompted:
        return [needed[place] for place in sorted(needed)]
    reach = REACH
    while True:
        newest, whole = await timeline.tail(reach)
        opener = _newest_user(newest)
        if opener is None and newest and not whole:
            opener = await timeline.opener(newest[-1].turn)
        group = _last_group(newest, opener, whole)
        if group is not None:
            break
        reach *= 8
    for entry in [*([opener] if opener else []), *group]:
        needed[entry.place] = entry
    return [needed[place] for place in sorted(needed)]


def last_group(entries: Sequence[Entry]) -> list[int]:
    """Indices of the last call with its results; empty if there is no call."""
    for unit in reversed(units([entry.reading for entry in entries])):
        if any(entries[i].reading.calls for i in unit.indices):
            return list(unit.indices)
    return []


def _newest_user(newest: Sequence[Entry]) -> Entry | None:
    """The newest user message, heartbeats included: the one that the model must answer."""
    return next((entry for entry in reversed(newest) if entry.reading.opens_turn), None)


def _last_group(newest: Sequence[Entry], opener: Entry | None, whole: bool) -> list[Entry] | None:
    """The last group after `opener`; empty if there is none, `None` if `newest` is too short to tell."""
    floor = opener.place if opener else -1
    after = [entry for entry in newest if entry.place > floor]
    reaches_back = whole or len(after) < len(newest)
    group = last_group(after)
    if reaches_back or (group and group[0] > 0):
        return [after[i] for i in group]
    return None
