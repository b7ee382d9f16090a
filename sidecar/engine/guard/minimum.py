"""What every answer must hold: system messages, the newest user message, the last tool group after it.

Rule: protocol.md, "The answer fits".
"""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.engine.contract import Timeline
from sidecar.engine.entry import Entry
from sidecar.messages.units import units

REACH = 4096
"""Tokens back from the end within which the last group is looked for first."""


async def minimum(timeline: Timeline) -> list[Entry]:
    """The entries that must not be left out, in order."""
    needed = {entry.place: entry for entry in await timeline.system()}
    newest, whole = await timeline.tail(REACH)
    if newest:
        opener = await timeline.opener(newest[-1].turn)
        reach = REACH
        while (group := _last_group(newest, opener, whole)) is None:
            reach *= 8
            newest, whole = await timeline.tail(reach)
        for entry in [*([opener] if opener else []), *group]:
            needed[entry.place] = entry
    return [needed[place] for place in sorted(needed)]


def _last_group(newest: Sequence[Entry], opener: Entry | None, whole: bool) -> list[Entry] | None:
    """The last call with its results, empty where the turn has none, `None` where `newest` is too short."""
    floor = opener.place if opener else -1
    reaches_opener = whole or newest[0].place <= floor
    after = [entry for entry in newest if entry.place > floor]
    groups = [u for u in units([e.reading for e in after]) if any(after[i].reading.calls for i in u.indices)]
    if groups and (reaches_opener or groups[-1].indices[0] > 0):
        return [after[i] for i in groups[-1].indices]
    return [] if reaches_opener else None
