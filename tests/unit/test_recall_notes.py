"""The share of room for instructions and recalled passages, and their written form."""

from collections.abc import Sequence

from sidecar.engine.entry import Entry
from sidecar.messages.dialects import dialect
from sidecar.recall.instructions import Instruction
from sidecar.recall.passages import rough_tokens
from sidecar.recall.plans import plan_in
from sidecar.recall.recollection import PLAN, VALUES, Noted, Recollection, write_notes
from sidecar.recall.retrieval import Remark, as_whole
from sidecar.recall.working_set import WorkingSet
from tests.guard_kit import cost

DAY_MS = 86_400_000
ROOM = 240
RULES = [f"Always answer question {n} in the form that we have agreed on." for n in range(12)]
CALL = b"""{"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function",
"function": {"name": "read", "arguments": "{\\"path\\": \\"src/a.py\\"}"}}]}"""


def remark(position: int, day: int, text: str) -> Remark:
    return Remark(position, f"t{position}", "user", day * DAY_MS, text)


def entry(raw: bytes) -> Entry:
    return Entry(
        message_id="m", position=1, place=1, turn=1, turn_id="t1", role="assistant", timestamp_ms=0,
        heartbeat=False, raw=raw, dialect=dialect("openai"), cost=cost,
    )  # fmt: skip


def notes(before: Sequence[Entry], plan: str = "", window: Sequence[str] = (), room: int = ROOM) -> str:
    standing = [Instruction(0, text, remark(n + 1, 19_000, text)) for n, text in enumerate(RULES)]
    values = WorkingSet()
    for each in before:
        values.add(each.reading)
    stated = plan_in(remark(20, 19_000, plan)) if plan else None
    return write_notes(Noted(standing, stated, values), window, room, rough_tokens).text


def test_instructions_take_half_of_the_notes_if_there_are_values() -> None:
    text = notes([entry(CALL)])
    assert "read: src/a.py" in text
    assert ROOM / 3 < rough_tokens(text.partition(VALUES)[0]) <= ROOM / 2 + 1


def test_instructions_take_what_values_do_not_need() -> None:
    assert ROOM / 2 + 20 < rough_tokens(notes(())) <= ROOM


STEPS = "- [x] read the parser\n- [ ] write the lexer\n- [ ] run the suite"


def test_the_plan_appears_with_instructions_and_values() -> None:
    text = notes([entry(CALL)], STEPS)
    assert f"{PLAN} (t20, 2022-01-08)\n{STEPS}\n" in text
    assert RULES[0] in text
    assert "read: src/a.py" in text


def test_a_plan_that_the_window_shows_is_not_repeated() -> None:
    assert PLAN not in notes((), STEPS, ["read the parser, write the lexer", "run the suite"])


def test_a_plan_that_is_done_is_not_noted() -> None:
    assert PLAN not in notes((), STEPS.replace("[ ]", "[x]"))


def test_a_plan_that_is_too_long_keeps_its_remaining_steps() -> None:
    done = "\n".join(f"- [x] step {n} took a long while and is over" for n in range(40))
    text = notes((), f"{done}\n- [ ] write the lexer")
    assert "- [ ] write the lexer" in text
    assert "[x]" not in text


def test_the_day_stands_where_it_changes() -> None:
    recollection = Recollection(500, rough_tokens, ())
    recollection.add(
        map(as_whole, [remark(3, 19_001, "c"), remark(2, 19_000, "b"), remark(1, 19_000, "a")]), 500
    )
    assert recollection.text().splitlines()[1:] == [
        "(t3, 2022-01-09) user: c",
        "(t2, 2022-01-08) user: b",
        "(t1) user: a",
    ]


def test_passages_take_no_more_than_their_room() -> None:
    for room in range(60, 400, 20):
        recollection = Recollection(room, rough_tokens, ())
        recollection.add((as_whole(remark(n, 19_000 + n, "word " * n)) for n in range(1, 40)), room)
        assert rough_tokens(recollection.text()) <= room
