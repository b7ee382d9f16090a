"""Reduces a list of messages to its budget while keeping it valid for the provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sidecar.engine.calls import Overflow
from sidecar.engine.guard.slot import Slot, Writer
from sidecar.messages.contract import Dialect, Leave, Missing, Send
from sidecar.messages.pairing import units


class Fitted(NamedTuple):
    """A list that fits, and what it leaves out."""

    slots: list[Slot]
    left_out: list[tuple[Slot, str]]
    """Slots not in the list, each with the reason."""
    excess: int = 0
    """Tokens by which the original list exceeded the budget."""


class Fitter:
    """Arranges the list, then drops the oldest turns, then replaces tool results, until it fits."""

    def __init__(self, dialect: Dialect, writer: Writer) -> None:
        self._dialect = dialect
        self._writer = writer

    def fit(self, slots: Sequence[Slot], room: int) -> Fitted:
        """The list reduced to at most `room` tokens.

        Raises:
            Overflow: the needed messages alone exceed `room`; `required` counts messages only.
        """
        left_out: list[tuple[Slot, str]] = []
        placed = self._arrange(slots, left_out)
        over = max(tokens_of(placed) - room, 0)
        while (excess := tokens_of(placed) - room) > 0:
            victims = _oldest(placed, excess)
            if not victims:
                placed = self._stubbed(placed, excess)
                if (needed := tokens_of(placed)) > room:
                    raise Overflow(needed)
                break
            gone = set(map(id, victims))
            left_out += [(slot, "over the token budget") for slot in victims]
            placed = self._arrange([slot for slot in placed if id(slot) not in gone], left_out)
        return Fitted(placed, left_out, over)

    def _arrange(self, slots: Sequence[Slot], left_out: list[tuple[Slot, str]]) -> list[Slot]:
        sources = [slot for slot in slots if slot.stub != "noResult"]
        placed: list[Slot] = []
        for placement in self._dialect.arrange([slot.reading for slot in sources]):
            match placement:
                case Send(index):
                    placed.append(sources[index])
                case Missing(_, index):
                    placed.append(self._writer.no_result(placement, sources[index]))
                case Leave(index, rule):
                    left_out.append((sources[index], f"the provider refuses it: {rule}"))
        return placed

    def _stubbed(self, slots: list[Slot], excess: int) -> list[Slot]:
        """The list with the largest tool results replaced, as far as needed to save `excess` tokens."""
        stubbed = list(slots)
        by_size = sorted(range(len(slots)), key=lambda i: -slots[i].tokens)
        for i in by_size:
            if excess <= 0:
                break
            slot = slots[i]
            if slot.entry and slot.reading.results and slot.stub in ("", "part"):
                stub = self._writer.kept(self._writer.stub(slot.entry), slot.kind, needed=slot.needed)
                if stub.tokens < slot.tokens:
                    excess -= slot.tokens - stub.tokens
                    stubbed[i] = stub
        return stubbed


def tokens_of(slots: Sequence[Slot]) -> int:
    """Total tokens of the slots."""
    return sum(slot.tokens for slot in slots)


def _oldest(slots: Sequence[Slot], excess: int) -> list[Slot]:
    """What to drop next: recalled text, oldest turns, summaries, oldest messages, then newest pins.

    Messages of one unit go together: a call with its results, reasoning with what follows from it.
    """
    loose = [slot for slot in slots if not slot.needed and not slot.pin]
    recalled = [slot for slot in loose if slot.kind in ("recall", "memory")]
    if recalled:
        return recalled
    free = [unit for unit in _units(slots) if all(_is_free(slot) for slot in unit)]
    newest = max((slot.turn for slot in slots), default=0)
    older = [unit for unit in free if unit[-1].turn < newest]
    if older:
        return _first(older, excess, whole_turns=True)
    made = [slot for slot in loose if slot.made]
    return made or _first(free, excess, whole_turns=False) or _newest_pin(slots)


def _units(slots: Sequence[Slot]) -> list[list[Slot]]:
    """The list divided into units, which are sent or left out as a whole, in order."""
    return [[slots[i] for i in unit.indices] for unit in units([slot.reading for slot in slots])]


def _is_free(slot: Slot) -> bool:
    return not slot.needed and not slot.pin and (slot.entry is not None or slot.of is not None)


def _newest_pin(slots: Sequence[Slot]) -> list[Slot]:
    newest = max((slot.pin for slot in slots if not slot.needed), default=0)
    return [slot for slot in slots if slot.pin == newest and not slot.needed] if newest else []


def _first(free: Sequence[Sequence[Slot]], excess: int, *, whole_turns: bool) -> list[Slot]:
    """The oldest units, as many as it takes to free `excess` tokens."""
    victims: list[Slot] = []
    for unit in free:
        if excess <= 0 and not (whole_turns and unit[-1].turn == victims[-1].turn):
            break
        victims += unit
        excess -= tokens_of(unit)
    return victims
