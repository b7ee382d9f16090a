"""The composition of an answer, stored so that the next answer of its view can extend it without the engine.

Engines unaware of views have one cut for all budgets. Once another view has answered, such an engine's choice
may no longer extend the last answer of this view; then the answer is rebuilt from its frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import DecodeError, Struct, json

from sidecar.engine.calls import Assembly, Kept, Kind, Made
from sidecar.engine.entry import Entry
from sidecar.engine.guard.slot import Slot
from sidecar.engine.session import Timeline

WHOLE = 1 << 40
"""Exceeds the number of messages in any answer."""


class Piece(Struct, array_like=True):
    """A text by the engine, or a run of consecutive messages."""

    first: str = ""
    """Id of the first message; `last` is that of the last one."""
    last: str = ""
    kind: Kind = "recent"
    made: Made | None = None


class Frame(Struct, array_like=True):
    """An answer whose last run of messages is open-ended: newer messages belong to it too."""

    pieces: list[Piece]
    since: str
    """Id of the first message of that run, which continues to the end of the timeline."""
    addition: str | None

    def encoded(self) -> bytes:
        """The frame, encoded for storage; the bytes stay the same while answers extend each other."""
        return json.encode(self)


class FindingTimeline(Timeline, Protocol):
    """A timeline that finds messages by their ids."""

    async def find(self, message_id: str) -> Entry | None:
        """The entry with that id, or `None`."""
        ...


def frame_of(assembly: Assembly, slots: Sequence[Slot], addition: str | None) -> Frame | None:
    """The frame of an engine's answer as it was sent; `None` if the answer does not end with messages."""
    own = {id(item) for item in assembly.items if isinstance(item, Made)}
    pieces: list[Piece] = []
    place = -1
    for slot in slots:
        if slot.entry is not None:
            entry, before = slot.entry, pieces[-1] if pieces else None
            follows = entry.place == place + 1 and entry.role != "system"
            if before and follows and not before.made and before.kind == slot.kind:
                before.last = entry.message_id
            else:
                pieces.append(Piece(entry.message_id, entry.message_id, slot.kind))
            place = entry.place if entry.role != "system" else -1
        elif slot.made is not None and id(slot.made) in own:
            pieces.append(Piece(made=slot.made))
            place = -1
    if not pieces or pieces[-1].made:
        return None
    return Frame(pieces[:-1], pieces[-1].first, addition)


async def continued(kept: bytes, timeline: FindingTimeline) -> Assembly | None:
    """The answer extended by newer messages; `None` if part of it is no longer on the timeline."""
    try:
        frame = json.decode(kept, type=Frame)
    except DecodeError:
        return None
    items: list[Kept | Made] = []
    newest = (await timeline.tail(0)).entries
    if not newest:
        return None
    for piece in (*frame.pieces, Piece(frame.since, newest[-1].message_id)):
        if piece.made is not None:
            items.append(piece.made)
            continue
        run = await _run(timeline, piece)
        if run is None:
            return None
        items += [Kept(entry, piece.kind) for entry in run]
    return Assembly(items=items, system_prompt_addition=frame.addition)


async def _run(timeline: FindingTimeline, piece: Piece) -> list[Entry] | None:
    """The messages of a piece, without heartbeats of earlier turns; `None` if it left the timeline."""
    first, last = await timeline.resolve(piece.first), await timeline.resolve(piece.last)
    end = await timeline.find(last) if first and last else None
    if first is None or last is None or end is None:
        return None
    before = await timeline.before(last, WHOLE, since=first) if first != last else []
    return [*(entry for entry in before if not entry.heartbeat or entry.turn == end.turn), end]
