"""Turns an engine's assembly into an answer that is complete, valid and within budget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from msgspec import structs

from sidecar.engine.calls import Assembly, Kept, Kind, Made, Overflow
from sidecar.engine.entry import Entry
from sidecar.engine.guard.fit import Fitted, Fitter, tokens_of
from sidecar.engine.guard.minimum import minimum
from sidecar.engine.guard.pinned import HEADING, NOTHING, Pin, Pinned, fitting
from sidecar.engine.guard.pruning_rules import PruningRules
from sidecar.engine.guard.slot import Cost, Slot, Writer
from sidecar.engine.guard.stubs import Stubs
from sidecar.engine.session import Timeline
from sidecar.messages.contract import Dialect, Reading
from sidecar.messages.pairing import only_reasons, units

REASONING_REACH = 16
"""Number of messages before an assistant message that are searched for its reasoning."""


class Part(NamedTuple):
    """One kind of content in an answer, with its size."""

    kind: Kind
    tokens: int
    message_count: int


class Answer(NamedTuple):
    """An answer to the host."""

    fitted: Fitted
    tokens: int
    composition: list[Part]
    stable_count: int
    """Leading messages that the next answer will also start with."""
    stable_tokens: int
    system_prompt_addition: str | None
    user_message_append: str | None

    @property
    def messages(self) -> list[bytes]:
        """The messages as sent."""
        return [slot.raw for slot in self.fitted.slots]


class Guard:
    """Checks and repairs engine answers for one dialect."""

    def __init__(
        self, dialect: Dialect, cost: Cost, count: Callable[[str], int], recall_tool: str | None = None
    ) -> None:
        self._dialect = dialect
        self._writer = Writer(dialect, cost, recall_tool)
        self._fitter = Fitter(dialect, self._writer)
        self._count = count

    def no_stubs(self) -> Stubs:
        """An empty set of lasting replacements."""
        return Stubs(self._writer)

    async def shrink_minimum(
        self, stubs: Stubs, timeline: Timeline, budget: int, *, prompted: bool = False
    ) -> bool:
        """Replace tool results in the minimum if it exceeds `budget`. Returns whether any replacement is new.

        This precedes the engine's choice, so that one large result does not push out everything else.

        Raises:
            Overflow: the minimum still exceeds `budget`.
        """
        needed = [
            self._writer.kept(entry, "recent", needed=True)
            for entry in await minimum(timeline, prompted=prompted)
        ]
        fitted = self._fitter.fit(needed, budget)
        return stubs.add(slot.entry for slot in fitted.slots if slot.entry)

    def prune(
        self,
        stubs: Stubs,
        rules: PruningRules,
        entries: Sequence[Entry],
        budget: int,
        spared: Collection[str] = (),
        least: int = 0,
    ) -> bool:
        """Replace old results and images of these entries, if that saves at least `least` tokens.

        Messages whose ids are in `spared` stay. Returns whether anything was replaced.
        """
        from sidecar.engine.guard.pruning import Pruner

        renewed = stubs.renewed(entries)
        chosen, saved = Pruner(rules, self._writer, stubs).choose(entries, budget, spared)
        if saved < least or not (renewed or chosen):
            return False
        stubs.forget_all_but(entries)
        stubs.replace({**renewed, **chosen})
        stubs.forget_shown()
        return True

    async def room_for(
        self, pins: Sequence[Pin], timeline: Timeline, budget: int, *, prompted: bool = False
    ) -> Pinned:
        """The pins that fit into `budget` in addition to the minimum."""
        if not pins:
            return NOTHING
        return fitting(pins, await minimum(timeline, prompted=prompted), self._writer, budget)

    async def answer(
        self,
        stubs: Stubs,
        assembly: Assembly,
        timeline: Timeline,
        budget: int,
        *,
        prompted: bool = False,
        pinned: Pinned = NOTHING,
    ) -> Answer:
        """The assembly with missing entries added and excess removed.

        `prompted` means that the host itself adds the newest user message after the answer.

        Raises:
            Overflow: the minimum alone exceeds `budget`.
        """
        addition, append = assembly.system_prompt_addition, assembly.user_message_append
        extra = self._text_tokens(addition) + self._text_tokens(append)
        needed = await minimum(timeline, prompted=prompted)
        whole = await self._with_reasoning(assembly, timeline)
        slots = self._slots(stubs, whole, needed, pinned)
        try:
            fitted = self._fitter.fit(slots, budget - extra)
        except Overflow:
            if not extra:
                raise
            addition = append = None
            fitted = self._fitter.fit(slots, budget)
        for entry in (entry for pin in pinned.left_out for entry in pin.entries):
            slot = self._writer.kept(entry, "recent", needed=False)
            fitted.left_out.append((slot, "its pin does not fit the budget"))
        return self._measured(fitted, addition, append)

    def as_came(self, entries: Sequence[Entry]) -> Answer:
        """The host's own list, unchanged, valid or not."""
        slots = [self._writer.kept(entry, "recent", needed=False) for entry in entries]
        return self._measured(Fitted(slots, []), None, None)

    async def _with_reasoning(self, assembly: Assembly, timeline: Timeline) -> Assembly:
        """The assembly with the reasoning that its messages follow from, and no reasoning without a follower.

        Providers that send reasoning as separate messages refuse one without the other.
        """
        if not self._dialect.keeps_lone_reasoning:
            return assembly
        chosen = {item.entry.message_id for item in assembly.items if isinstance(item, Kept)}
        items: list[Kept | Made] = []
        place = -1
        for item in assembly.items:
            if isinstance(item, Kept):
                entry = item.entry
                if entry.role == "assistant" and entry.place != place + 1:
                    before = await timeline.before(entry.message_id, REASONING_REACH)
                    mates = _mates([each.reading for each in (*before, entry)])
                    missing = [before[i] for i in mates if before[i].message_id not in chosen]
                    items += [Kept(each, item.kind) for each in missing]
                    chosen.update(each.message_id for each in missing)
                place = entry.place
            items.append(item)
        whole: list[Kept | Made] = []
        behind: Entry | None = None
        for item in reversed(items):
            if isinstance(item, Kept):
                entry, follower, behind = item.entry, behind, item.entry
                if only_reasons(entry.reading) and not await _follows(timeline, entry, follower):
                    continue
            whole.append(item)
        return structs.replace(assembly, items=whole[::-1])

    def _slots(self, stubs: Stubs, assembly: Assembly, needed: Sequence[Entry], pinned: Pinned) -> list[Slot]:
        """The assembly's items, plus missing needed and pinned entries in their place."""
        must = {entry.message_id for entry in needed}
        missing = {entry.message_id: entry for entry in needed}
        for message_id, (entry, _, _) in pinned.entries.items():
            missing.setdefault(message_id, entry)

        def kept(entry: Entry, kind: Kind) -> Slot:
            entry = stubs.shown(entry)
            _, order, pin_id = pinned.entries.get(entry.message_id, (entry, 0, ""))
            needs = entry.message_id in must
            return self._writer.kept(entry, kind, needed=needs, pin=order, pin_id=pin_id)

        slots: list[Slot] = []
        seen: set[str] = set()
        for item in assembly.items:
            if isinstance(item, Made):
                slots.append(self._writer.made(item))
            elif item.entry.message_id not in seen:
                seen.add(item.entry.message_id)
                missing.pop(item.entry.message_id, None)
                slots.append(kept(item.entry, item.kind))
        slots = _in_order(slots)
        for entry in missing.values():
            at = next((i for i, s in enumerate(slots) if (s.place or 0) > entry.place), len(slots))
            if entry.role == "system":
                at = min(at, _first_other(slots))
            slots.insert(at, kept(entry, "recent"))
        first = _first_other(slots)
        slots[first:first] = pinned.texts
        opening = slots[first] if pinned.entries and first < len(slots) else None
        if opening and opening.pin and opening.entry and opening.entry.role != "user":
            slots.insert(first, self._writer.pinned_text(HEADING, opening.pin, opening.pin_id))
        return slots

    def _measured(self, fitted: Fitted, addition: str | None, append: str | None) -> Answer:
        parts: dict[Kind, tuple[int, int]] = {}
        for slot in fitted.slots:
            tokens, count = parts.get(slot.kind, (0, 0))
            parts[slot.kind] = (tokens + slot.tokens, count + 1)
        texts: tuple[tuple[Kind, str | None], ...] = (("system", addition), ("memory", append))
        for kind, text in texts:
            if text:
                tokens, count = parts.get(kind, (0, 0))
                parts[kind] = (tokens + self._text_tokens(text), count)
        composition = [Part(kind, *sizes) for kind, sizes in parts.items()]
        stable = len(fitted.slots)
        while stable and _passes(fitted.slots[stable - 1]):
            stable -= 1
        return Answer(
            fitted,
            sum(part.tokens for part in composition),
            composition,
            stable,
            tokens_of(fitted.slots[:stable]),
            addition or None,
            append or None,
        )

    def _text_tokens(self, text: str | None) -> int:
        return self._count(text) if text else 0


def _mates(readings: Sequence[Reading]) -> Sequence[int]:
    """Indices of the messages that form a unit with the last one, which is not included."""
    last = len(readings) - 1
    return next(unit.indices[:-1] for unit in units(readings) if unit.indices[-1] == last)


async def _follows(timeline: Timeline, entry: Entry, other: Entry | None) -> bool:
    """Whether `other` is an assistant message directly after `entry`."""
    if other is None or other.role != "assistant":
        return False
    before = [] if other.place == entry.place + 1 else await timeline.before(other.message_id, 1)
    return other.place == entry.place + 1 or [e.message_id for e in before] == [entry.message_id]


def _passes(slot: Slot) -> bool:
    """True for recalled text that will not keep its place in the next answer."""
    return slot.kind in ("recall", "memory") and not (slot.made and slot.made.lasting)


def _in_order(slots: list[Slot]) -> list[Slot]:
    """The slots, with the session's messages in chronological order."""
    at = [i for i, slot in enumerate(slots) if slot.entry and slot.kind != "system"]
    talk = [slots[i] for i in at]
    ordered = sorted(talk, key=lambda slot: slot.place or 0)
    if ordered != talk:
        for i, slot in zip(at, ordered, strict=True):
            slots[i] = slot
    return slots


def _first_other(slots: Sequence[Slot]) -> int:
    """Index of the first slot that is not a system message."""
    return next((i for i, slot in enumerate(slots) if slot.kind != "system"), len(slots))
