"""One message of an answer while the guard works on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from sidecar.engine.contract import Kind, Made
from sidecar.engine.entry import Entry
from sidecar.messages import fence
from sidecar.messages.contract import Dialect, Mark, MarkKind, Missing, Reading

Cost = Callable[[Reading], int]
"""Tokens of a message, overhead included."""

MARKS: dict[Kind, MarkKind] = {
    "summary": "summary",
    "activityLog": "activityLog",
    "memory": "memory",
    "recall": "recall",
}


class Slot(Struct, frozen=True, kw_only=True, eq=False):
    """A message of the answer: one of the session, one that the engine made, or one that stands in."""

    raw: bytes
    reading: Reading
    tokens: int
    kind: Kind
    entry: Entry | None = None
    made: Made | None = None
    needed: bool = False
    """True for the minimum, which is never left out."""
    stub: Literal["", "stub", "noResult"] = ""

    @property
    def turn(self) -> int:
        """The turn it belongs to; 0 for what the engine made."""
        return self.entry.turn if self.entry else 0


class Writer:
    """Writes the guard's own messages in one dialect."""

    def __init__(self, dialect: Dialect, cost: Cost) -> None:
        self._dialect = dialect
        self._cost = cost

    def made(self, made: Made) -> Slot:
        """An engine's text as a marked message."""
        mark = Mark(MARKS.get(made.kind, "note"), made.ref)
        raw = self._dialect.write_text(made.role, fence.wrap(mark, made.text), made.timestamp_ms)
        return self._slot(raw, made.kind, made=made)

    def no_result(self, missing: Missing, of: Slot) -> Slot:
        """A stand-in for the result of an interrupted call."""
        mark = Mark("noResult", missing.call.id)
        text = fence.wrap(mark, f"No result recorded: the call of {missing.call.name} was interrupted.")
        stamp = of.entry.timestamp_ms if of.entry else 0
        return self._slot(
            self._dialect.write_result(missing.call, text, stamp), of.kind, needed=of.needed, stub="noResult"
        )

    def stub(self, slot: Slot, tool: str | None) -> Slot:
        """The same tool results with a short reference in place of their text."""
        ref = slot.entry.message_id if slot.entry else ""
        how = f" Read it with {tool}." if tool else ""
        text = fence.wrap(
            Mark("stub", ref), f"Tool result left out: {slot.tokens} tokens, message {ref}.{how}"
        )
        raw = self._dialect.replace_results(slot.raw, {r.call_id: text for r in slot.reading.results})
        return self._slot(raw, slot.kind, entry=slot.entry, needed=slot.needed, stub="stub")

    def _slot(
        self,
        raw: bytes,
        kind: Kind,
        *,
        entry: Entry | None = None,
        made: Made | None = None,
        needed: bool = False,
        stub: Literal["", "stub", "noResult"] = "",
    ) -> Slot:
        reading = self._dialect.read(raw)
        return Slot(
            raw=raw,
            reading=reading,
            tokens=self._cost(reading),
            kind=kind,
            entry=entry,
            made=made,
            needed=needed,
            stub=stub,
        )
