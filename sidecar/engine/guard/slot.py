"""A message of an answer under construction, and the writer of the guard's own messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct, structs

from sidecar.engine.calls import Kind, Made
from sidecar.engine.entry import Entry
from sidecar.engine.guard.replacement import Replacement, replaced
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
    """A message of the answer: from the session, written by the engine, or a stand-in."""

    raw: bytes
    reading: Reading
    tokens: int
    kind: Kind
    entry: Entry | None = None
    made: Made | None = None
    needed: bool = False
    """True for the minimum, which is never left out."""
    stub: Literal["", "stub", "part", "noResult"] = ""
    """`part` if some of the replaced results is left, `noResult` for a missing result."""
    pin: int = 0
    """Its order among the pins, from 1; 0 if not pinned."""
    pin_id: str = ""

    of: Entry | None = None
    """The message whose call a stand-in answers; if that is dropped, so is the stand-in."""

    @property
    def place(self) -> int | None:
        """Its place on the timeline; `None` if it has none."""
        if self.entry:
            return self.entry.place
        return self.made.covers[0] if self.made and self.made.covers else None

    @property
    def turn(self) -> int:
        """Its turn; 0 for text by the engine."""
        entry = self.entry or self.of
        return entry.turn if entry else 0


class Writer:
    """Writes the guard's own messages in one dialect."""

    def __init__(self, dialect: Dialect, cost: Cost, recall_tool: str | None = None) -> None:
        self._dialect = dialect
        self._cost = cost
        self._recall_tool = recall_tool

    def kept(self, entry: Entry, kind: Kind, *, needed: bool, pin: int = 0, pin_id: str = "") -> Slot:
        """A message of the session."""
        return Slot(
            raw=entry.raw,
            reading=entry.reading,
            tokens=entry.tokens,
            kind="system" if entry.role == "system" else kind,
            entry=entry,
            needed=needed,
            stub=_stub(entry),
            pin=pin,
            pin_id=pin_id,
        )

    def made(self, made: Made) -> Slot:
        """An engine's text as a marked message."""
        mark = Mark("ack" if made.role == "assistant" else MARKS.get(made.kind, "note"), made.ref)
        raw = self._dialect.write_text(made.role, self._dialect.wrap(mark, made.text), made.timestamp_ms)
        reading = self._dialect.read(raw)
        return Slot(raw=raw, reading=reading, tokens=self._cost(reading), kind=made.kind, made=made)

    def pinned_text(self, made: Made, order: int, pin_id: str) -> Slot:
        """A pinned text."""
        return structs.replace(self.made(made), pin=order, pin_id=pin_id)

    def no_result(self, missing: Missing, of: Slot) -> Slot:
        """A stand-in for the result of an interrupted call."""
        mark = Mark("noResult", missing.call.id)
        text = self._dialect.wrap(
            mark, f"No result recorded: the call of {missing.call.name} was interrupted."
        )
        raw = self._dialect.write_result(missing.call, text, of.entry.timestamp_ms if of.entry else 0)
        reading = self._dialect.read(raw)
        return Slot(
            raw=raw,
            reading=reading,
            tokens=self._cost(reading),
            kind=of.kind,
            needed=of.needed,
            pin=of.pin,
            pin_id=of.pin_id,
            stub="noResult",
            of=of.entry,
        )

    def stub(self, entry: Entry) -> Entry:
        """The message with short references in place of its tool results."""
        return self.replaced(entry.whole or entry, self.clearing(entry.whole or entry))

    def clearing(self, entry: Entry) -> Replacement:
        """The replacement that leaves only a reference."""
        return Replacement("clear", entry.message_id, entry.turn_id, entry.tokens)

    def replaced(self, entry: Entry, replacement: Replacement) -> Entry:
        """The message with its tool results or images replaced."""
        return replaced(entry, replacement, self._dialect, self._recall_tool)


def _stub(entry: Entry) -> Literal["", "stub", "part"]:
    if entry.whole is None:
        return ""
    return "stub" if entry.how in ("clear", "duplicate") else "part"
