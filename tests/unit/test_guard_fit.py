"""For any input, the guard's list fits, is valid and has the minimum, or it reports the tokens required."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.engine.calls import Overflow
from sidecar.engine.entry import Entry
from sidecar.engine.guard.fit import Fitter, tokens_of
from sidecar.engine.guard.slot import Slot, Writer
from sidecar.messages.contract import Placement, Reading
from sidecar.messages.dialects import dialect as dialect_of
from tests.e2e.conversations import DIALECTS, Speaker
from tests.guard_kit import MARKS, cost


class _Counting:
    """A dialect that counts how often it arranges."""

    def __init__(self, name: str) -> None:
        self._dialect = dialect_of(name).marked(MARKS)
        self.arranged = 0

    def arrange(self, readings: Sequence[Reading], *, cut: bool = False) -> list[Placement]:
        self.arranged += 1
        return self._dialect.arrange(readings, cut=cut)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dialect, name)


def _slots(
    dialect: str, messages: Sequence[bytes], needed: set[int], *, one_turn: bool = False
) -> list[Slot]:
    reader = dialect_of(dialect).marked(MARKS)
    slots: list[Slot] = []
    turn = 1
    for i, raw in enumerate(messages):
        reading = reader.read(raw)
        turn += reading.opens_turn and not one_turn
        entry = Entry(
            message_id=f"m{i}",
            position=i + 1,
            place=i + 1,
            turn=turn,
            turn_id=f"t{turn}",
            role=reading.role,
            timestamp_ms=0,
            heartbeat=False,
            raw=raw,
            dialect=reader,
            cost=cost,
            reading=reading,
        )
        slots.append(Writer(reader, cost).kept(entry, "recent", needed=i in needed or entry.role == "system"))
    return slots


def _wild(dialect: str, seed: int, turns: int, size: int) -> tuple[list[bytes], set[int]]:
    """A broken history that ends with a question and a tool group, which are needed."""
    speaker = Speaker(dialect, seed)
    messages = [message for _ in range(turns) for message in speaker.wild_turn(size)]
    start = len(messages)
    messages += [speaker.user(speaker.words(size)), *speaker.group(size * 4)]
    return messages, set(range(start, len(messages)))


@settings(max_examples=60, deadline=None)
@given(
    dialect=st.sampled_from(DIALECTS),
    seed=st.integers(0, 10_000),
    turns=st.integers(0, 6),
    share=st.floats(0.0, 1.2),
)
def test_a_fitted_list_keeps_the_room_and_is_valid(dialect: str, seed: int, turns: int, share: float) -> None:
    messages, needed = _wild(dialect, seed, turns, 20)
    slots = _slots(dialect, messages, needed)
    reader = dialect_of(dialect).marked(MARKS)
    fitter = Fitter(reader, Writer(reader, cost))
    room = int(tokens_of(slots) * share)
    try:
        fitted = fitter.fit(slots, room)
    except Overflow as overflow:
        assert overflow.required > room
        room = overflow.required
        fitted = fitter.fit(slots, room)
        assert tokens_of(fitted.slots) == room, "what is required is what the minimum takes"
    assert tokens_of(fitted.slots) <= room
    assert reader.check([slot.reading for slot in fitted.slots]) == []
    sent = {slot.entry.message_id for slot in fitted.slots if slot.entry}
    assert {slot.entry.message_id for slot in slots if slot.entry and slot.needed} <= sent | {
        slot.entry.message_id for slot, reason in fitted.left_out if slot.entry and "refuses" in reason
    }
    gone = {slot.entry.message_id for slot, _ in fitted.left_out if slot.entry}
    assert sent | gone == {f"m{i}" for i in range(len(messages))} and not sent & gone


@pytest.mark.parametrize("one_turn", [False, True], ids=["many turns", "one turn"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_list_far_over_its_budget_is_arranged_a_few_times_only(dialect: str, one_turn: bool) -> None:
    speaker = Speaker(dialect, 1)
    messages: list[bytes] = []
    while len(messages) < 3000:
        messages += speaker.wild_turn(4)
    slots = _slots(dialect, messages, {len(messages) - 1}, one_turn=one_turn)
    counting = _Counting(dialect)
    fitter = Fitter(counting, Writer(counting, cost))
    needed = tokens_of([slot for slot in slots if slot.needed])
    fitter.fit(slots, needed + (tokens_of(slots) - needed) // 10)
    assert counting.arranged <= 4


def test_whole_turns_go_before_anything_of_the_newest_one() -> None:
    speaker = Speaker("openai", 2)
    turns = [speaker.turn(20) for _ in range(6)]
    messages = [message for turn in turns for message in turn]
    slots = _slots("openai", messages, {len(messages) - 1})
    reader = dialect_of("openai").marked(MARKS)
    fitted = Fitter(reader, Writer(reader, cost)).fit(slots, tokens_of(slots) * 2 // 3)
    kept = [slot.raw for slot in fitted.slots]
    assert kept == messages[-len(kept) :]
    assert any(kept == [m for turn in turns[i:] for m in turn] for i in range(6)), "no turn is torn apart"


def test_results_are_replaced_only_where_leaving_out_is_not_enough() -> None:
    speaker = Speaker("openai", 3)
    calls = [speaker.new_call() for _ in range(3)]
    sizes = (50, 400, 800)
    results = speaker.results([(c, speaker.words(n)) for c, n in zip(calls, sizes, strict=True)])
    messages = [*speaker.turn(100), speaker.user("go"), *speaker.assistant("", calls), *results]
    slots = _slots("openai", messages, set(range(len(messages) - 5, len(messages))))
    needed = tokens_of([slot for slot in slots if slot.needed])
    reader = dialect_of("openai").marked(MARKS)
    fitter = Fitter(reader, Writer(reader, cost))
    assert not any(slot.stub for slot in fitter.fit(slots, needed).slots)
    fitted = fitter.fit(slots, needed - 10).slots
    assert [slot.stub for slot in fitted] == ["", "", "", "", "stub"], "the largest one is enough"


def test_fitting_is_the_same_every_time() -> None:
    messages, needed = _wild("openclaw", 77, 5, 30)
    slots = _slots("openclaw", messages, needed)
    reader = dialect_of("openclaw").marked(MARKS)
    room = tokens_of(slots) * 2 // 3
    lists = [[s.raw for s in Fitter(reader, Writer(reader, cost)).fit(slots, room).slots] for _ in range(2)]
    assert lists[0] == lists[1]
    shuffled = list(slots)
    Random(1).shuffle(shuffled)
    assert (
        reader.check([s.reading for s in Fitter(reader, Writer(reader, cost)).fit(shuffled, room).slots])
        == []
    )
