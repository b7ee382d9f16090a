"""Brings a list of messages within its budget while it stays valid for the provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sidecar.engine.guard.slot import Slot, Writer
from sidecar.engine.overflow import Overflow
from sidecar.messages.contract import Dialect, Leave, Missing, Send


class Fitted(NamedTuple):
    """A list that fits, and what was left out of it."""

    slots: list[Slot]
    left_out: list[tuple[Slot, str]]
    """What is not in the list, each with the reason."""


class Fitter:
    """Arranges, then leaves out the oldest turns, then replaces tool results, until the list fits."""

    def __init__(self, dialect: Dialect, writer: Writer, recall_tool: str | None) -> None:
        self._dialect = dialect
        self._writer = writer
        self._recall_tool = recall_tool

    def fit(self, slots: Sequence[Slot], room: int) -> Fitted:
        """The list in at most `room` tokens.

        Raises:
            Overflow: the needed messages alone take more; `required` counts messages only.
        """
        left_out: list[tuple[Slot, str]] = []
        placed = self._arrange(slots, left_out)
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
        return Fitted(placed, left_out)

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
        """The list with the largest tool results replaced until `excess` tokens are saved."""
        stubbed = list(slots)
        by_size = sorted(range(len(slots)), key=lambda i: -slots[i].tokens)
        for i in by_size:
            if excess <= 0:
                break
            if slots[i].reading.results and not slots[i].stub:
                stub = self._writer.stub(slots[i], self._recall_tool)
                if stub.tokens < slots[i].tokens:
                    excess -= slots[i].tokens - stub.tokens
                    stubbed[i] = stub
        return stubbed


def tokens_of(slots: Sequence[Slot]) -> int:
    """The tokens of all slots together."""
    return sum(slot.tokens for slot in slots)


def _oldest(slots: Sequence[Slot], excess: int) -> list[Slot]:
    """What to leave out next: recalled text, then oldest turns, then summaries, then oldest units."""
    recalled = [slot for slot in slots if slot.kind in ("recall", "memory")]
    if recalled:
        return recalled
    free = [slot for slot in slots if not slot.needed and slot.entry]
    newest = max((slot.turn for slot in slots), default=0)
    older = [slot for slot in free if slot.turn < newest]
    if older:
        return _whole_turns(older, excess)
    made = [slot for slot in slots if slot.made]
    if made:
        return made
    return _until(free, excess)


def _whole_turns(slots: Sequence[Slot], excess: int) -> list[Slot]:
    """The oldest turns that make up `excess` tokens."""
    victims: list[Slot] = []
    for slot in slots:
        if excess <= 0 and victims and slot.turn != victims[-1].turn:
            break
        victims.append(slot)
        excess -= slot.tokens
    return victims


def _until(slots: Sequence[Slot], excess: int) -> list[Slot]:
    """The oldest messages that make up `excess` tokens; results that lose their call follow by themselves."""
    victims: list[Slot] = []
    for slot in slots:
        if excess <= 0:
            break
        victims.append(slot)
        excess -= slot.tokens
    return victims
