"""What counts as injected into a session: through turns, retries, evictions and compactions."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.memory.record import Injection, Item, MemoryRecord, decoded


def injection(turn: int, *keys: str, prompt: str = "p") -> Injection:
    return Injection(turn, prompt, f"t{turn}", "body", [Item("s", None, key, 1, key) for key in keys], 0)


def test_items_count_once_their_turn_has_ended() -> None:
    record = MemoryRecord(turns=[injection(1, "a", "b")])
    assert record.begin(1, "p") == ([], [])
    assert record.begin(2, "q") == (["a", "b"], [])
    assert record.begin(3, "r") == ([], [])


def test_a_retry_with_another_prompt_releases_what_was_not_used() -> None:
    record = MemoryRecord(turns=[injection(1, "a")])
    assert record.begin(1, "other") == ([], [])
    assert record.turns == []


def test_a_rewind_frees_what_later_turns_had() -> None:
    record = MemoryRecord(turns=[injection(1, "a"), injection(2, "b", "c")])
    record.end()
    assert record.begin(2, "other") == ([], ["b", "c"])
    assert [i.turn for i in record.turns] == [1]


def test_an_item_that_another_turn_holds_too_is_not_freed() -> None:
    record = MemoryRecord(turns=[injection(1, "a"), injection(2, "a", "b")])
    record.end()
    assert record.evict({1}, 3) == ["b"]


def test_the_open_turn_is_not_evicted() -> None:
    record = MemoryRecord(turns=[injection(4, "a")])
    assert record.evict(set(), 4) == []
    assert record.of_turn(4, "p") is not None


def test_compaction_keeps_what_the_open_turn_was_given() -> None:
    record = MemoryRecord(start=injection(0, "s"), turns=[injection(1, "a"), injection(2, "b")])
    record.begin(2, "p")
    record.compact()
    assert record.start is None
    assert [i.turn for i in record.turns] == [2]


def test_the_record_survives_being_kept() -> None:
    record = MemoryRecord(start=injection(0, "s"), turns=[injection(1, "a")])
    record.end()
    assert decoded(record.encoded()) == record
    assert decoded(None) == MemoryRecord()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("nnnnerc"), st.integers(0, 5), st.integers(1, 4)), max_size=40))
def test_only_finished_turns_in_the_context_count(steps: list[tuple[str, int, int]]) -> None:
    """A set maintained by the record's events equals the record's own."""
    record, counted, turn, number = MemoryRecord(), set[str](), 1, 0
    for kind, pick, size in steps:
        if kind == "n":
            turn += 1
            ended, free = record.begin(turn, f"p{turn}")
            counted = (counted | set(ended)) - set(free)
            new = [f"k{number + i}" for i in range(size)]
            number += size
            assert not counted & set(new)
            record.turns.append(injection(turn, *new, prompt=f"p{turn}"))
        elif kind == "e":
            alive = {i.turn for i in record.turns if i.turn % (pick + 1) == 0}
            counted -= set(record.evict(alive, turn))
        elif kind == "r":
            turn = max(1, turn - pick)
            ended, free = record.begin(turn, "again")
            counted = (counted | set(ended)) - set(free)
        else:
            record.compact()
            counted = set()
        assert counted == {item.key for i in record.turns if i.ended for item in i.items}
